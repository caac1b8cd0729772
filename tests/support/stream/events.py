"""Streams of every framing as a list of their events, to cut a stream behind each or to change one."""

from __future__ import annotations

import json
import re
from struct import unpack_from
from typing import Any

from tests.support.stream.event_stream import framed
from tests.support.stream.transcripts import RecordedStream
from toolonce.stream.dialects.table import TABLE
from toolonce.stream.wire.event_stream import EventStreamReader

_FRAME = re.compile(rb"\{.*\}", re.DOTALL)


def events(transcript: RecordedStream) -> list[bytes]:
    """The bytes in pieces that end behind a message, an element of an array, or a line."""
    data = transcript.data
    if _is_binary(transcript):
        return _messages(data)
    if data.lstrip(b"\xef\xbb\xbf \r\n").startswith(b"["):
        return _elements(data)
    return data.splitlines(keepends=True)


def frame_in(transcript: RecordedStream, event: bytes) -> Any:
    """The frame in one event; None where there is none."""
    found = _FRAME.search(_payload(event) if _is_binary(transcript) else event)
    try:
        return json.loads(found[0]) if found else None
    except ValueError:
        return None


def with_frame(transcript: RecordedStream, event: bytes, frame: object) -> bytes:
    """The event with another frame."""
    text = json.dumps(frame).encode()
    if _is_binary(transcript):
        return framed(event[12 : 12 + unpack_from("!I", event, 4)[0]], text)
    return _FRAME.sub(lambda _: text, event)


def _is_binary(transcript: RecordedStream) -> bool:
    return TABLE[transcript.dialect].framing is EventStreamReader


def _payload(message: bytes) -> bytes:
    return message[12 + unpack_from("!I", message, 4)[0] : -4] if len(message) >= 16 else b""


def _messages(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        size = unpack_from("!I", data, at)[0] if len(data) - at >= 16 else 0
        end = at + size if 16 <= size <= len(data) - at else len(data)
        found.append(data[at:end])
        at = end
    return found


def _elements(data: bytes) -> list[bytes]:
    text, found, at = data.decode("utf-8", "surrogateescape"), [], 0
    while (start := text.find("{", at)) >= 0:
        try:
            _, end = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            break
        found.append(text[at:end].encode("utf-8", "surrogateescape"))
        at = end
    return [*found, text[at:].encode("utf-8", "surrogateescape")]
