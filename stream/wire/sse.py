"""Splits bytes into server-sent events by the WHATWG rules, however the bytes are chunked.

Decides where a line and an event end. Must not know what is inside an event's data. Lines that are not SSE are kept,
because some servers write an error as plain JSON between the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .framing import BOM, WireEvent
from .limits import LimitPassed, TurnLimits

_SILENT_FIELDS = frozenset({b"id", b"retry"})
_REPLACEMENT = "\ufffd".encode()


class SseReader:
    """Takes bytes, returns events. Keeps one unfinished line and one unfinished event between chunks.

    Attributes:
        bad_utf8: some line so far was not UTF-8.
        stray: lines that are neither SSE fields nor comments, up to ``TurnLimits.stray_bytes``.
    """

    names_events = False
    ended: bool | None = None

    def __init__(self, limits: TurnLimits) -> None:
        self.bad_utf8 = False
        self.unreadable: str | None = None
        self.stray: list[bytes] = []
        self._limits = limits
        self._stray_room = limits.stray_bytes
        self._has_error_line = False
        self._pieces: list[bytes] = []  # of the unfinished line; joined once, when it ends
        self._held = 0
        self._started = False
        self._after_cr = False  # the last chunk ended with CR; a LF at the start of the next one belongs to it
        self._name = b""
        self._data: list[bytes] = []
        self._data_room = limits.event_bytes
        self._damaged = False

    def feed(self, chunk: bytes) -> Iterator[WireEvent]:
        """The events that these bytes complete.

        Raises:
            LimitPassed: a line or an event is too long.
        """
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        cut = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
        if cut:
            block = b"".join((*self._pieces, chunk[:cut]))
            self._pieces, self._held = [], 0
            self._after_cr = block.endswith(b"\r")
            yield from self._events(self._lines(block))
        if cut < len(chunk):
            self._pieces.append(chunk[cut:])
            self._held += len(chunk) - cut
            if self._held > self._limits.line_bytes:
                raise LimitPassed("line_bytes")

    def end(self) -> Iterator[WireEvent]:
        """At a clean end: the last event if its blank line is missing. The caller decides whether it counts."""
        if last := self._last_line():
            yield from self._events([last])
        if self._data:
            yield self._dispatch()

    def broken(self) -> None:
        """The transport broke: no further event, but wrong bytes and an error in the last line are still noted."""
        self._data.clear()
        if last := self._last_line():
            self._field(last)

    def refused(self, data: bytes) -> None:
        """Nothing to do: the data of an event is no plain line."""

    def _lines(self, block: bytes) -> Iterable[bytes]:
        block = self._without_bom(block)
        if b"\r" in block:
            lines = block.splitlines()  # on bytes, it splits at CR, LF and CRLF only
        else:
            lines = block.split(b"\n")  # faster
            lines.pop()  # the empty rest after the last line end
        if len(block) > self._limits.line_bytes:
            return self._bounded(lines)
        return lines if _is_utf8(block) else map(self._repaired, lines)

    def _bounded(self, lines: list[bytes]) -> Iterator[bytes]:
        for line in lines:
            if len(line) > self._limits.line_bytes:
                raise LimitPassed("line_bytes")
            yield self._repaired(line)

    def _last_line(self) -> bytes:
        if not self._pieces:
            return b""
        line = self._without_bom(b"".join(self._pieces))
        self._pieces, self._held = [], 0
        return self._repaired(without_cut_character(line))

    def _without_bom(self, block: bytes) -> bytes:
        if self._started:
            return block
        self._started = True
        return block.removeprefix(BOM)

    def _repaired(self, line: bytes) -> bytes:
        whole = repaired(line)
        if whole is not line:
            self.bad_utf8 = self._damaged = True
        return whole

    def _events(self, lines: Iterable[bytes]) -> Iterator[WireEvent]:
        data = self._data
        for line in lines:
            if not line:
                if data:
                    yield self._dispatch()
                else:
                    self._name = b""
            elif line.startswith(b"data: "):  # fast path for the two forms that nearly all servers send
                if data:
                    self._make_room(line)
                data.append(line[6:])
            elif line.startswith(b"event: "):
                self._name = line[7:]
            else:
                self._field(line)

    def _dispatch(self) -> WireEvent:
        data = self._data
        if len(data) == 1:
            whole = data.pop()
        else:
            whole = b"\n".join(data)
            data.clear()
            self._data_room = self._limits.event_bytes
        event = (self._name, whole, self._damaged)
        self._name = b""
        self._damaged = False
        return event

    def _field(self, line: bytes) -> None:
        """Read a non-empty line; a line without a colon is a field name without a value."""
        name, _, value = line.partition(b":")
        if name == b"event":
            self._name = value.removeprefix(b" ")
        elif name == b"data":
            if self._data:
                self._make_room(line)
            self._data.append(value.removeprefix(b" "))
        elif name == b"error" and not self._has_error_line and tells_error(value):
            self._has_error_line = True  # kept whatever stands before it: it voids the turn
            self.stray.append(line)
        elif name and name not in _SILENT_FIELDS and self._stray_room > 0:
            self._stray_room -= len(line) + 1
            self.stray.append(line)

    def _make_room(self, line: bytes) -> None:
        self._data_room -= len(line)
        if self._data_room < len(self._data[0]):
            raise LimitPassed("event_bytes")


def tells_error(value: bytes) -> bool:
    """Whether a field line of the name ``error`` tells one: some servers write their error so, as words or as JSON."""
    return value.strip() not in (b"", b"null")


def repaired(data: bytes) -> bytes:
    """The same bytes where they are UTF-8; else with U+FFFD in the place of what is wrong."""
    return data if _is_utf8(data) else data.decode("utf-8", "replace").encode()


def without_cut_character(line: bytes) -> bytes:
    """The last line of a stream with U+FFFD for a character that the end cut: it is incomplete and not wrong."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            return line[: error.start] + _REPLACEMENT
    return line


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
