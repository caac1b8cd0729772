"""Builds replies for OpenAI Responses: one output item per call, matched by ``call_id`` and never by an item's ``id``.

There is no error flag, so the text says when the call failed.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....store.model.parts import FilePart, ImagePart, Part
from ...replies.answers import CallReply, json_text, text_of
from ...replies.call_ids import IdRule
from ...replies.protocol import Ids, Message, WrittenCall, with_ids

IDS = IdRule(max_length=64)  # the service's limit for call_id; any character is accepted

_CALLS = frozenset({"function_call", "custom_tool_call"})
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


def echo(items: Sequence[Message], ids: Ids) -> list[Message]:
    return with_ids(items, ids, types=_CALLS, field="call_id")


def write(text: str, calls: Sequence[WrittenCall]) -> list[Message]:
    said: list[Message] = [{"role": "assistant", "content": text}] if text else []
    return said + [_call(call) for call in calls]


def results(answers: Sequence[CallReply]) -> list[Message]:
    return [_result(answer) for answer in answers]


def _call(call: WrittenCall) -> Message:
    if isinstance(call.arguments, str):
        return {"type": "custom_tool_call", "call_id": call.call_id, "name": call.name, "input": call.arguments}
    arguments = json_text(call.arguments)
    return {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": arguments}


def _result(answer: CallReply) -> Message:
    custom = answer.kind == "custom"
    kind = "custom_tool_call_output" if custom else "function_call_output"
    item: Message = {"type": kind, "call_id": answer.call_id, "output": _output(answer)}
    echoed = ("caller",) if custom else ("caller", "namespace")  # a custom output has no namespace
    return item | {name: answer.echo[name] for name in echoed if answer.echo.get(name) is not None}


def _output(answer: CallReply) -> str | list[Message]:
    contents = [_content(part) for part in answer.parts]
    if all(content["type"] == "input_text" for content in contents):
        return answer.text
    return contents


def _content(part: Part) -> Message:
    match part:
        case ImagePart(media_type) if part.url is not None or media_type in _IMAGES:
            return {"type": "input_image", "detail": "auto", "image_url": part.url or _data_url(part)}
        case FilePart(url=str(url)):
            return {"type": "input_file", "file_url": url}
        case FilePart(data=str()):
            return {"type": "input_file", "filename": part.name or "file", "file_data": _data_url(part)}
        case _:
            return {"type": "input_text", "text": text_of((part,))}


def _data_url(part: ImagePart | FilePart) -> str:
    return f"data:{part.media_type};base64,{part.data}"
