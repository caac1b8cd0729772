"""Ollama chat requests: the history in ``messages``; a stream unless ``stream`` is false."""

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
    return None  # there is neither a choice of tools nor a switch against parallel calls
