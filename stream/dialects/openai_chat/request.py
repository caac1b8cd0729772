"""OpenAI Chat Completions requests: the history in ``messages``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HISTORY = "messages"
TURN_MEMBER: str | None = None
STREAMED: Mapping[str, Any] = {"stream": True}
TOOLS = ("tools",)


def user_message(content: str | Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "user", "content": content if isinstance(content, str) else list(content)}


def with_system(body: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {**body, HISTORY: [{"role": "system", "content": text}, *body[HISTORY]]}


def pairs(message: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    calls = [str(call.get("id")) for call in message.get("tool_calls") or ()]
    if legacy := message.get("function_call"):
        calls.append(f"function {legacy.get('name')}")
    match message.get("role"):
        case "tool":
            return calls, [str(message.get("tool_call_id"))]
        case "function":
            return calls, [f"function {message.get('name')}"]
        case _:
            return calls, []


def at_most_one_call(body: Mapping[str, Any]) -> dict[str, Any]:
    return {**body, "parallel_tool_calls": False}
