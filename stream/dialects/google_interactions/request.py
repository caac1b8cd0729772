"""Google Interactions requests: the history in ``input``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HISTORY = "input"
TURN_MEMBER: str | None = None
STREAMED: Mapping[str, Any] = {"stream": True}
TOOLS = ("tools",)


def user_message(content: str | Sequence[dict[str, Any]]) -> dict[str, Any]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    return {"type": "user_input", "content": blocks}


def with_system(body: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {**body, "system_instruction": text}


def pairs(message: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    calls = [str(message.get("id"))] if message.get("type") == "function_call" else []
    return calls, [str(message.get("call_id"))] if message.get("type") == "function_result" else []


def at_most_one_call(body: Mapping[str, Any]) -> None:
    return None
