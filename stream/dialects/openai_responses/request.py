"""OpenAI Responses requests: the history in ``input``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HISTORY = "input"
TURN_MEMBER: str | None = None
STREAMED: Mapping[str, Any] = {"stream": True}
TOOLS = ("tools",)


def user_message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def at_most_one_call(body: Mapping[str, Any]) -> dict[str, Any]:
    return {**body, "parallel_tool_calls": False}
