"""Bedrock Converse requests: the history in ``messages``, user and model alternating, tools in ``toolConfig``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HISTORY = "messages"
TURN_MEMBER: str | None = "content"
STREAMED: Mapping[str, Any] = {}  # the URL path requests the stream
TOOLS = ("toolConfig", "tools")


def user_message(content: str | Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "user", "content": [{"text": content}] if isinstance(content, str) else list(content)}


def with_system(body: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {**body, "system": [{"text": text}]}


def pairs(message: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Those of tools that the provider runs itself have a ``type``."""
    called = [block["toolUse"] for block in message.get("content") or () if "toolUse" in block]
    answered = [block["toolResult"] for block in message.get("content") or () if "toolResult" in block]
    calls = [str(call.get("toolUseId")) for call in called if not call.get("type")]
    return calls, [str(result.get("toolUseId")) for result in answered if not result.get("type")]


def at_most_one_call(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Converse has no such option. Claude's own one is passed through, where ``modelId`` in the body names Claude.

    It needs a ``type``, unless ``toolConfig`` has a choice, because two choices are refused.
    """
    if "claude" not in str(body.get("modelId")):
        return None
    own = dict(body.get("additionalModelRequestFields") or {})
    kind = {} if (body.get("toolConfig") or {}).get("toolChoice") else {"type": "auto"}
    own["tool_choice"] = {**kind, **(own.get("tool_choice") or {}), "disable_parallel_tool_use": True}
    return {**body, "additionalModelRequestFields": own}
