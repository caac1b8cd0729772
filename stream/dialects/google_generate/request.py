"""Google generateContent requests: the history in ``contents``, user and model alternating."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HISTORY = "contents"
TURN_MEMBER: str | None = "parts"
STREAMED: Mapping[str, Any] = {}  # the URL path requests the stream
TOOLS = ("tools",)


def user_message(content: str | Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": content}] if isinstance(content, str) else list(content)}


def with_system(body: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {**body, "systemInstruction": {"parts": [{"text": text}]}}


def pairs(message: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """By name and order: an id is there only where one came."""
    parts = message.get("parts") or ()
    calls = [str(part["functionCall"].get("name")) for part in parts if "functionCall" in part]
    return calls, [str(part["functionResponse"].get("name")) for part in parts if "functionResponse" in part]


def at_most_one_call(body: Mapping[str, Any]) -> None:
    return None
