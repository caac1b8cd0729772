"""Builds replies for Google Interactions: one ``function_result`` step per call, with an error flag.

Calls and results are matched by ``call_id``. JSON is sent as text, so that every integer keeps its digits. With
``previous_interaction_id`` the results are the whole next input; without a stored interaction the echoed steps come
before them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....store.model.parts import FilePart, ImagePart, Part
from ...replies.answers import CallReply, text_of
from ...replies.call_ids import IdRule
from ...replies.protocol import Ids, Message, WrittenCall, with_ids

IDS = IdRule()  # any id that is not empty and not repeated


def echo(items: Sequence[Message], ids: Ids) -> list[Message]:
    return with_ids(items, ids, types=("function_call",), field="id")


def write(text: str, calls: Sequence[WrittenCall]) -> list[Message]:
    said: list[Message] = [{"type": "model_output", "content": [{"type": "text", "text": text}]}] if text else []
    return said + [
        {"type": "function_call", "id": call.call_id, "name": call.name, "arguments": call.object_arguments}
        for call in calls
    ]


def results(answers: Sequence[CallReply]) -> list[Message]:
    return [_result(answer) for answer in answers]


def _result(answer: CallReply) -> Message:
    step: Message = {"type": "function_result", "call_id": answer.call_id, "name": answer.tool}
    return step | {"result": _content(answer)} | ({"is_error": True} if answer.is_error else {})


def _content(answer: CallReply) -> str | list[Message]:
    contents = [_part(part) for part in answer.parts]
    return answer.text if all(content["type"] == "text" for content in contents) else contents


def _part(part: Part) -> Message:
    match part:
        case ImagePart():
            return {"type": "image"} | _source(part)
        case FilePart(media_type="application/pdf"):
            return {"type": "document"} | _source(part)
        case _:
            return {"type": "text", "text": text_of((part,))}


def _source(part: ImagePart | FilePart) -> Message:
    place = {"uri": part.url} if part.url is not None else {"data": part.data}
    return {"mime_type": part.media_type} | place
