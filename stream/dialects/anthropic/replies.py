"""Builds replies for Anthropic Messages: all results of a turn as blocks of one user message, in call order.

Keeps the provider's rules: results come before any text; text blocks are not empty; an error result holds text only;
images are of four formats; a document is a PDF or plain text.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any

from ....store.model.parts import FilePart, ImagePart, Part
from ...replies.answers import CallReply, text_of
from ...replies.call_ids import IdRule
from ...replies.protocol import Ids, Message, WrittenCall, with_ids

# Ids of 128 characters were observed to be accepted; longer ones were not tried.
IDS = IdRule(max_length=128, pattern=re.compile(r"[a-zA-Z0-9_-]+"))

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


def echo(items: Sequence[Message], ids: Ids) -> list[Message]:
    blocks = [block for block in with_ids(items, ids, types=("tool_use",), field="id") if not _is_blank(block)]
    return [{"role": "assistant", "content": blocks}] if blocks else []


def write(text: str, calls: Sequence[WrittenCall]) -> list[Message]:
    blocks: list[Message] = [{"type": "text", "text": text}]
    blocks += [
        {"type": "tool_use", "id": call.call_id, "name": call.name, "input": call.object_arguments} for call in calls
    ]
    return echo(blocks, ())


def results(answers: Sequence[CallReply]) -> list[Message]:
    return [{"role": "user", "content": [_result(answer) for answer in answers]}] if answers else []


def _result(answer: CallReply) -> Message:
    block: Message = {"type": "tool_result", "tool_use_id": answer.call_id, "content": _content(answer)}
    if answer.is_error:
        block["is_error"] = True
    if toolset := answer.echo.get("toolset_name"):
        block["toolset_name"] = toolset
    return block


def _content(answer: CallReply) -> str | list[Message]:
    blocks = [_block(part) for part in answer.parts]
    if answer.is_error or all(block["type"] == "text" for block in blocks):
        return answer.text
    return [block for block in blocks if not _is_blank(block)]


def _is_blank(block: Message) -> bool:
    """Whether this is a text block without a visible character, which the provider refuses."""
    return block.get("type") == "text" and not block["text"].strip()


def _block(part: Part) -> Message:
    match part:
        case ImagePart(media_type) if part.url is not None or media_type in _IMAGES:
            return {"type": "image", "source": _source(part)}
        case FilePart("application/pdf"):
            return _document(part, _source(part))
        case FilePart("text/plain", data=str(data)) if (text := _text(data)) is not None:
            return _document(part, {"type": "text", "media_type": "text/plain", "data": text})
        case _:
            return {"type": "text", "text": text_of((part,))}


def _source(part: ImagePart | FilePart) -> Message:
    if part.url is not None:
        return {"type": "url", "url": part.url}
    return {"type": "base64", "media_type": part.media_type, "data": part.data}


def _document(part: FilePart, source: dict[str, Any]) -> Message:
    return {"type": "document", "source": source} | ({"title": part.name} if part.name else {})


def _text(data: str) -> str | None:
    """The text of a plain text file; None where it is not UTF-8. The reply then only names the file."""
    try:
        return base64.b64decode(data).decode("utf-8")
    except ValueError:
        return None
