"""Google Interactions requests: the history in ``input``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HISTORY = "input"
TURN_MEMBER: str | None = None
STREAMED: Mapping[str, Any] = {"stream": True}
TOOLS = ("tools",)


def user_message(text: str) -> dict[str, Any]:
    return {"type": "user_input", "content": [{"type": "text", "text": text}]}


def at_most_one_call(body: Mapping[str, Any]) -> None:
    return None
