"""Google generateContent requests: the history in ``contents``, user and model alternating."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HISTORY = "contents"
TURN_MEMBER: str | None = "parts"
STREAMED: Mapping[str, Any] = {}  # the URL path requests the stream
TOOLS = ("tools",)


def user_message(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": text}]}


def at_most_one_call(body: Mapping[str, Any]) -> None:
    return None
