"""Builds replies for Google generateContent: all results of a turn as ``functionResponse`` parts of one user content.

The service matches calls and results by order and name; an id is sent only where one came. ``response`` is an object
with ``output`` or ``error``. The service stores numbers as doubles, so larger integers are sent as strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....store.model.parts import FilePart, ImagePart, JsonPart, Part
from ...replies.answers import CallReply, json_text, text_of
from ...replies.call_ids import IdRule
from ...replies.protocol import Ids, Message, WrittenCall

IDS = IdRule(pairs=False)

# The documented signature for calls that no Gemini model made; newer models refuse a request without a signature.
_FOREIGN = "skip_thought_signature_validator"

_MEDIA = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
_EXACT = 2**53

# A result with more levels is sent as JSON text. The service's parser stops at 100 nested messages, and one level of
# JSON needs several messages.
_DEEPEST = 32


def echo(items: Sequence[Message], ids: Ids) -> list[Message]:
    """The model's content unchanged, since the service checks parts, order and signatures."""
    return [{"role": "model", "parts": list(items)}] if items else []


def write(text: str, calls: Sequence[WrittenCall]) -> list[Message]:
    parts: list[Message] = [{"text": text}] if text else []
    parts += [_call(call, first=number == 0) for number, call in enumerate(calls)]
    return [{"role": "model", "parts": parts}] if parts else []


def results(answers: Sequence[CallReply]) -> list[Message]:
    return [{"role": "user", "parts": [_result(answer) for answer in answers]}] if answers else []


def _call(call: WrittenCall, *, first: bool) -> Message:
    function = _id(call.call_id) | {"name": call.name, "args": call.object_arguments}
    return {"functionCall": function} | ({"thoughtSignature": _FOREIGN} if first else {})


def _result(answer: CallReply) -> Message:
    media = [part for part in answer.parts if _is_shown(part) and not answer.is_error]
    written = [part for part in answer.parts if part not in media]
    response = {"error": answer.text} if answer.is_error else {"output": _output(written)}
    function = _id(answer.call_id) | {"name": answer.tool, "response": response}
    return {"functionResponse": function | ({"parts": [_medium(part) for part in media]} if media else {})}


def _id(call_id: str | None) -> Message:
    return {} if call_id is None else {"id": call_id}


def _output(parts: Sequence[Part]) -> Any:
    match parts:
        case [JsonPart(value)]:
            return _in_doubles(value) if _fits(value, _DEEPEST) else json_text(value)
        case _:
            return text_of(parts)


def _fits(value: Any, levels: int) -> bool:
    match value:
        case dict():
            return levels > 0 and all(_fits(member, levels - 1) for member in value.values())
        case list():
            return levels > 0 and all(_fits(member, levels - 1) for member in value)
        case _:
            return True


def _in_doubles(value: Any) -> Any:
    match value:
        case int() if abs(value) > _EXACT:
            return str(value)
        case dict():
            return {name: _in_doubles(member) for name, member in value.items()}
        case list():
            return [_in_doubles(member) for member in value]
        case _:
            return value


def _is_shown(part: Part) -> bool:
    return isinstance(part, ImagePart | FilePart) and part.media_type in _MEDIA


def _medium(part: Part) -> Message:
    assert isinstance(part, ImagePart | FilePart), "only media parts are shown"
    if part.url is not None:
        return {"fileData": {"mimeType": part.media_type, "fileUri": part.url}}
    return {"inlineData": {"mimeType": part.media_type, "data": part.data}}
