"""Builds replies for Ollama's chat: one ``tool`` message per call, with the tool's name and the call's id.

The messages follow the assistant message in call order. Arguments go back as an object, since the server's own type
takes no text. A tool message holds text only and has no error flag, so the text says when the call failed.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...replies.answers import CallReply
from ...replies.call_ids import IdRule
from ...replies.protocol import Ids, Message, WrittenCall, with_tool_call_ids

# Servers before autumn 2025 send no ids, pass over those that they get, and pair by name and order.
IDS = IdRule()


def echo(items: Sequence[Message], ids: Ids) -> list[Message]:
    return [with_tool_call_ids(message, ids) for message in items]


def write(text: str, calls: Sequence[WrittenCall]) -> list[Message]:
    if not text and not calls:
        return []
    message: Message = {"role": "assistant", "content": text}
    return [message | ({"tool_calls": [_call(call) for call in calls]} if calls else {})]


def results(answers: Sequence[CallReply]) -> list[Message]:
    return [
        {"role": "tool", "tool_name": answer.tool, "content": answer.text, "tool_call_id": answer.call_id}
        for answer in answers
    ]


def _call(call: WrittenCall) -> Message:
    return {"id": call.call_id, "function": {"name": call.name, "arguments": call.object_arguments}}
