"""Anthropic Messages requests: the history in ``messages``, user and model alternating."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HISTORY = "messages"
TURN_MEMBER: str | None = "content"
STREAMED: Mapping[str, Any] = {"stream": True}
TOOLS = ("tools",)


def user_message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def at_most_one_call(body: Mapping[str, Any]) -> dict[str, Any]:
    """The option is a member of the tool choice. The choice ``none`` forbids all calls and does not accept it."""
    choice = body.get("tool_choice") or {"type": "auto"}
    told = dict(choice) if choice.get("type") == "none" else {**choice, "disable_parallel_tool_use": True}
    return {**body, "tool_choice": told}
