"""Anthropic Messages requests: the history in ``messages``, user and model alternating."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HISTORY = "messages"
TURN_MEMBER: str | None = "content"
STREAMED: Mapping[str, Any] = {"stream": True}
TOOLS = ("tools",)


def user_message(content: str | Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "user", "content": content if isinstance(content, str) else list(content)}


def with_system(body: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {**body, "system": text}


def pairs(message: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    calls = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
    return calls, [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]


def at_most_one_call(body: Mapping[str, Any]) -> dict[str, Any]:
    """The option is a member of the tool choice. The choice ``none`` forbids all calls and does not accept it."""
    choice = body.get("tool_choice") or {"type": "auto"}
    told = dict(choice) if choice.get("type") == "none" else {**choice, "disable_parallel_tool_use": True}
    return {**body, "tool_choice": told}
