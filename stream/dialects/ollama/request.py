"""Ollama chat requests: the history in ``messages``; a stream unless ``stream`` is false."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HISTORY = "messages"
TURN_MEMBER: str | None = None
STREAMED: Mapping[str, Any] = {"stream": True}
TOOLS = ("tools",)


def user_message(content: str | Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The provider has no blocks: a block is an object with ``content`` (text), ``images`` (base64 texts), or both."""
    if isinstance(content, str):
        return {"role": "user", "content": content}
    images = [image for block in content for image in block.get("images", ())]
    text = "\n".join(block["content"] for block in content if "content" in block)
    return {"role": "user", "content": text} | ({"images": images} if images else {})


def with_system(body: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {**body, HISTORY: [{"role": "system", "content": text}, *body[HISTORY]]}


def pairs(message: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Servers pair by order: older ones have no ids."""
    results = ["a call"] if message.get("role") == "tool" else []
    return ["a call" for _ in message.get("tool_calls") or ()], results


def at_most_one_call(body: Mapping[str, Any]) -> None:
    return None  # there is neither a choice of tools nor a switch against parallel calls
