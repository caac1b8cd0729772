"""Messages of ``application/vnd.amazon.eventstream``, as a service writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from struct import pack, unpack_from
from typing import Any
from zlib import crc32


def message(payload: dict[str, Any] | bytes, **headers: str) -> bytes:
    """One message; a header ``event_type`` is ``:event-type``."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    block = b"".join(header(":" + name.replace("_", "-"), value) for name, value in headers.items())
    return framed(block, body)


def event(name: str, payload: dict[str, Any] | bytes) -> bytes:
    return message(payload, event_type=name, content_type="application/json", message_type="event")


def exception(name: str, payload: dict[str, Any] | bytes) -> bytes:
    return message(payload, exception_type=name, content_type="application/json", message_type="exception")


def header(name: str, value: str) -> bytes:
    return pack("!B", len(name)) + name.encode() + b"\x07" + pack("!H", len(value.encode())) + value.encode()


def framed(block: bytes, body: bytes) -> bytes:
    prelude = pack("!II", 16 + len(block) + len(body), len(block))
    whole = prelude + pack("!I", crc32(prelude)) + block + body
    return whole + pack("!I", crc32(whole))


def payloads(data: bytes) -> Iterator[bytes]:
    """The payloads of messages that are known to be right."""
    at = 0
    while at < len(data):
        size, headers = unpack_from("!II", data, at)
        yield data[at + 12 + headers : at + size - 4]
        at += size
