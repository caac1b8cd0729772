"""Builds replies for Bedrock Converse: all results of a turn as ``toolResult`` blocks of one user message.

Keeps the service's rules: blocks are in call order; text blocks are not blank; ``json`` is an object; a tool's name has
at most 64 plain characters, even where the model invented it; ``status`` is sent for errors only, since not every model
accepts it. Bytes are base64, as on the wire; `for_boto3` turns them into the form that boto3 expects.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any

from ....store.model.parts import FilePart, ImagePart, JsonPart, Part, TextPart
from ...replies.answers import CallReply, is_plain, text_of
from ...replies.call_ids import IdRule
from ...replies.protocol import Ids, Message, WrittenCall, rename_calls

IDS = IdRule(max_length=64, pattern=re.compile(r"[a-zA-Z0-9_.:-]+"))

_IMAGES = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
_FILES = {
    "application/pdf": "pdf", "text/csv": "csv", "text/html": "html", "text/plain": "txt", "text/markdown": "md",
}  # fmt: skip
_BLOBS = frozenset({"bytes", "redactedContent"})


def echo(items: Sequence[Message], ids: Ids) -> list[Message]:
    content = rename_calls(items, ids, _is_call, _under)
    return [{"role": "assistant", "content": content}] if content else []


def write(text: str, calls: Sequence[WrittenCall]) -> list[Message]:
    blocks: list[Message] = [{"text": text}] if text.strip() else []
    blocks += [
        {"toolUse": {"toolUseId": call.call_id, "name": _name(call.name), "input": call.object_arguments}}
        for call in calls
    ]
    return [{"role": "assistant", "content": blocks}] if blocks else []


def results(answers: Sequence[CallReply]) -> list[Message]:
    return [{"role": "user", "content": [_result(answer) for answer in answers]}] if answers else []


def for_boto3(messages: Sequence[Message]) -> list[Message]:
    """The same messages with bytes instead of base64 text, since boto3 encodes bytes itself."""
    return [_in_bytes(message) for message in messages]


def _in_bytes(value: Any, name: str = "") -> Any:
    match value:
        case dict():
            free = name in ("input", "json")  # written by a model or a tool: left as it is
            return value if free else {key: _in_bytes(member, key) for key, member in value.items()}
        case list():
            return [_in_bytes(member) for member in value]
        case str() if name in _BLOBS:
            return base64.b64decode(value)
        case _:
            return value


def _is_call(item: Message) -> bool:
    about = item.get("toolUse")
    return isinstance(about, dict) and about.get("type") != "server_tool_use"


def _under(item: Message, call_id: str | None) -> Message:
    about = item["toolUse"]
    return {"toolUse": {**about, "toolUseId": call_id, "name": _name(about["name"])}}


def _name(name: str) -> str:
    """A tool name that the service accepts. Results are matched by id alone, so the name may be changed."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "_"


def _result(answer: CallReply) -> Message:
    parts = (TextPart(answer.text),) if answer.is_error else answer.parts
    content = [_block(part) for part in parts] or [_text("")]
    failed = {"status": "error"} if answer.is_error else {}
    return {"toolResult": {"toolUseId": answer.call_id, "content": content, **failed}}


def _block(part: Part) -> Message:
    match part:
        case JsonPart(value) if isinstance(value, dict) and is_plain(value):
            return {"json": value}
        case ImagePart(media_type) if media_type in _IMAGES and (source := _source(part)):
            return {"image": {"format": _IMAGES[media_type], "source": source}}
        case FilePart(media_type) if media_type in _FILES and (source := _source(part)):
            return {"document": {"format": _FILES[media_type], "name": _title(part.name), "source": source}}
        case _:
            return _text(text_of((part,)))


def _text(text: str) -> Message:
    return {"text": text if text.strip() else "(empty)"}


def _source(part: ImagePart | FilePart) -> Message | None:
    """The source of the content; None for a URL that the service does not read."""
    if part.url is None:
        return {"bytes": part.data}
    return {"s3Location": {"uri": part.url}} if part.url.startswith("s3://") else None


def _title(name: str | None) -> str:
    plain = re.sub(r"[^a-zA-Z0-9()\[\]-]+", " ", name or "").strip()
    return plain[:200] or "document"
