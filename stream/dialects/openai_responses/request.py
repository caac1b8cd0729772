"""OpenAI Responses requests: the history in ``input``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HISTORY = "input"
TURN_MEMBER: str | None = None
STREAMED: Mapping[str, Any] = {"stream": True}
TOOLS = ("tools",)


def user_message(content: str | Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "user", "content": content if isinstance(content, str) else list(content)}


def with_system(body: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {**body, "instructions": text}


def pairs(message: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    kind, call_id = message.get("type"), str(message.get("call_id"))
    calls = [call_id] if kind in ("function_call", "custom_tool_call") else []
    return calls, [call_id] if kind in ("function_call_output", "custom_tool_call_output") else []


def at_most_one_call(body: Mapping[str, Any]) -> dict[str, Any]:
    return {**body, "parallel_tool_calls": False}
