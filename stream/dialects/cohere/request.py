"""Cohere v2 chat requests: the history in ``messages``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HISTORY = "messages"
TURN_MEMBER: str | None = None
STREAMED: Mapping[str, Any] = {"stream": True}
TOOLS = ("tools",)


def user_message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def at_most_one_call(body: Mapping[str, Any]) -> None:
    return None  # ``tool_choice`` is REQUIRED or NONE, and there is no switch against parallel calls
