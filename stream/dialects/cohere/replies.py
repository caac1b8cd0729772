"""Builds replies for Cohere v2 chat: one ``tool`` message per call, in call order, with the call's id.

Keeps the service's rules: an assistant message with calls holds no text, which goes into ``tool_plan``; arguments are
text; unknown members are refused. A result that is a JSON object becomes a document, whose members the model can cite.
A tool message has no error flag, so an error is a document with the member ``error``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....store.model.parts import JsonPart, Part
from ...replies.answers import CallReply, is_plain, json_text, text_of
from ...replies.call_ids import IdRule
from ...replies.protocol import Ids, Message, WrittenCall, with_tool_call_ids

IDS = IdRule()  # no limit of an id is documented


def echo(items: Sequence[Message], ids: Ids) -> list[Message]:
    return [with_tool_call_ids(message, ids) for message in items]


def write(text: str, calls: Sequence[WrittenCall]) -> list[Message]:
    said = text if text.strip() else ""
    if not calls:
        return [{"role": "assistant", "content": said}] if said else []
    plan: Message = {"tool_plan": said} if said else {}
    return [{"role": "assistant", "tool_calls": [_call(call) for call in calls], **plan}]


def results(answers: Sequence[CallReply]) -> list[Message]:
    return [{"role": "tool", "tool_call_id": answer.call_id, "content": _content(answer)} for answer in answers]


def _call(call: WrittenCall) -> Message:
    function = {"name": call.name, "arguments": json_text(call.object_arguments)}
    return {"id": call.call_id, "type": "function", "function": function}


def _content(answer: CallReply) -> list[Message]:
    if answer.is_error:
        return [{"type": "document", "document": {"data": {"error": answer.text}}}]
    return [_block(part) for part in answer.parts] or [_text("")]


def _block(part: Part) -> Message:
    match part:
        case JsonPart(value) if isinstance(value, dict) and value and is_plain(value):
            return {"type": "document", "document": {"data": value}}
        case _:
            return _text(text_of((part,)))


def _text(text: str) -> Message:
    return {"type": "text", "text": text if text.strip() else "(empty)"}
