"""Cohere v2 chat requests: the history in ``messages``."""

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
    results = [str(message.get("tool_call_id"))] if message.get("role") == "tool" else []
    return [str(call.get("id")) for call in message.get("tool_calls") or ()], results


def at_most_one_call(body: Mapping[str, Any]) -> None:
    return None  # ``tool_choice`` is REQUIRED or NONE, and there is no switch against parallel calls
