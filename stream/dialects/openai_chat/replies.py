"""Builds replies for OpenAI Chat Completions: one ``tool`` message per call.

The messages follow the assistant message in call order. A tool message holds text only and has no error flag, so the
text says when the call failed. The legacy ``function_call`` has no id; its answer is a ``function`` message with the
tool's name.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...replies.answers import CallReply, json_text
from ...replies.call_ids import IdRule
from ...replies.protocol import Ids, Message, WrittenCall, with_tool_call_ids

# The strictest limit of the service (some models accept 64). Compatible servers compare ids byte for byte, so any
# character is allowed.
IDS = IdRule(max_length=40)


def echo(items: Sequence[Message], ids: Ids) -> list[Message]:
    return [with_tool_call_ids(message, ids) for message in items]


def write(text: str, calls: Sequence[WrittenCall]) -> list[Message]:
    if not text and not calls:
        return []
    message: Message = {"role": "assistant", "content": text or None}
    return [message | ({"tool_calls": [_call(call) for call in calls]} if calls else {})]


def results(answers: Sequence[CallReply]) -> list[Message]:
    return [_result(answer) for answer in answers]


def _call(call: WrittenCall) -> Message:
    if isinstance(call.arguments, str):
        return {"id": call.call_id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    function = {"name": call.name, "arguments": json_text(call.arguments)}
    return {"id": call.call_id, "type": "function", "function": function}


def _result(answer: CallReply) -> Message:
    if answer.echo.get("legacy"):
        return {"role": "function", "name": answer.tool, "content": answer.text}
    return {"role": "tool", "tool_call_id": answer.call_id, "content": answer.text}
