"""Splits bytes into messages of ``application/vnd.amazon.eventstream``, however the bytes are chunked.

Decides where a message ends, what its headers say, and whether both checksums are right. Must not know what is inside
a payload. Format: "Event stream encoding" in Amazon's documentation; the limits are those of Amazon's SDKs.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from zlib import crc32

from .framing import WireEvent
from .limits import LimitPassed, TurnLimits

HEADER_BYTES = 128 * 1024
MESSAGE_BYTES = 24 * 1024 * 1024
_PRELUDE = struct.Struct("!III")  # length of the message, length of its headers, checksum of these two
_CHECKSUM = struct.Struct("!I")
_FRAME = _PRELUDE.size + _CHECKSUM.size
# Bytes of a header's value by its type: true, false, byte, short, integer, long, timestamp, uuid.
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_BYTES, _STRING = 6, 7


class EventStreamReader:
    """Takes bytes, returns messages. Keeps one unfinished message, and reads nothing after a wrong one.

    A message of the type ``exception`` or ``error`` becomes an event named ``error``.

    Attributes:
        unreadable: what is wrong with the bytes; None where nothing is.
    """

    names_events = True
    ended: bool | None = None

    def __init__(self, limits: TurnLimits) -> None:
        self.bad_utf8 = False
        self.stray: list[bytes] = []
        self.unreadable: str | None = None
        self._most = limits.event_bytes
        self._held = bytearray()
        self._due = _PRELUDE.size  # bytes needed before the next step of parsing
        self._known: dict[bytes, bytes] = {}  # header block -> event name; a stream has about six different ones

    def feed(self, chunk: bytes) -> Iterator[WireEvent]:
        """The messages that these bytes complete.

        Raises:
            LimitPassed: a message is longer than ``TurnLimits.event_bytes``.
        """
        if self.unreadable:
            return
        self._held += chunk
        if len(self._held) < self._due:
            return
        data, at = bytes(self._held), 0
        try:
            while (size := self._size(data, at)) is not None:
                self._due = size
                if len(data) - at < size:
                    break
                yield self._message(data, at, size)
                at += size
                self._due = _PRELUDE.size
        except _Unreadable as wrong:
            self.unreadable = str(wrong)
            at = len(data)
        del self._held[:at]

    def end(self) -> Iterator[WireEvent]:
        """An incomplete message never counts."""
        return iter(())

    def broken(self) -> None:
        """Nothing to do: bytes without their checksum are not read."""

    def refused(self, data: bytes) -> None:
        """Nothing to do: a payload is no plain line."""

    def _size(self, data: bytes, at: int) -> int | None:
        """The length of the message at this offset; None where its prelude is incomplete."""
        if len(data) - at < _PRELUDE.size:
            return None
        size, headers, checksum = _PRELUDE.unpack_from(data, at)
        if crc32(data[at : at + 8]) != checksum:
            raise _Unreadable("a wrong checksum of an event stream message's prelude")
        if headers > HEADER_BYTES or size > MESSAGE_BYTES or size < headers + _FRAME:
            raise _Unreadable("a wrong length of an event stream message")
        if size > self._most:
            raise LimitPassed("event_bytes")
        return int(size)

    def _message(self, data: bytes, at: int, size: int) -> WireEvent:
        end = at + size - _CHECKSUM.size
        (checksum,) = _CHECKSUM.unpack_from(data, end)
        if crc32(memoryview(data)[at:end]) != checksum:
            raise _Unreadable("a wrong checksum of an event stream message")
        start = at + _PRELUDE.size
        (length,) = _CHECKSUM.unpack_from(data, at + 4)
        block, payload = data[start : start + length], data[start + length : end]
        name = self._known.get(block)
        if name is None:
            headers = _headers(block)
            if headers.get(b":message-type") in (b"exception", b"error"):
                return b"error", _error(headers, payload), False
            name = headers.get(b":event-type", b"")
            if len(self._known) < 16:
                self._known[block] = name
        return (b"" if name == b"error" else name), payload, False


class _Unreadable(Exception):
    """The bytes cannot be read any further."""


def _headers(block: bytes) -> dict[bytes, bytes]:
    """The headers whose values are strings; the others are checked and skipped."""
    found: dict[bytes, bytes] = {}
    names: set[bytes] = set()
    at = 0
    while at < len(block):
        name, at = _counted(block, at, 1)
        kind, at = _take(block, at, 1)
        if kind[0] in (_BYTES, _STRING):
            value, at = _counted(block, at, 2)
        elif kind[0] in _SIZES:
            value, at = _take(block, at, _SIZES[kind[0]])
        else:
            raise _Unreadable("an event stream header of an unknown type")
        if not name or name in names or not (_is_utf8(name) and (kind[0] != _STRING or _is_utf8(value))):
            raise _Unreadable("an event stream header without a name, doubled, or not UTF-8")
        names.add(name)
        if kind[0] == _STRING:
            found[name] = value
    return found


def _counted(block: bytes, at: int, width: int) -> tuple[bytes, int]:
    length, at = _take(block, at, width)
    return _take(block, at, int.from_bytes(length))


def _take(block: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(block):
        raise _Unreadable("event stream headers that are cut")
    return block[at : at + size], at + size


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _error(headers: Mapping[bytes, bytes], payload: bytes) -> bytes:
    """The error as a JSON object with code and message, from the headers or from the payload."""
    code = headers.get(b":exception-type") or headers.get(b":error-code") or b""
    message = headers.get(b":error-message", b"").decode()
    try:
        document = json.loads(payload)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict):
        words = (document.get("message"), document.get("Message"), document.get("originalMessage"))
        message = next((word for word in words if isinstance(word, str)), message)
    return json.dumps({"code": code.decode() or None, "message": message or None}).encode()
