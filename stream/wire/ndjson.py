"""Splits bytes into the lines of ``application/x-ndjson``, however the bytes are chunked.

Decides what a line is: it ends in LF and nowhere else, a CR before it is whitespace, and an empty line is skipped. Must
not know what is inside a line. Python's `splitlines` would also split at U+2028, inside of a string.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .framing import BOM, WireEvent
from .limits import LimitPassed, TurnLimits
from .sse import repaired, without_cut_character


class NdjsonReader:
    """Takes bytes and returns lines. It holds one unfinished line.

    Attributes:
        bad_utf8: some line so far was not UTF-8.
        stray: the lines from the first one on that is not JSON, up to ``TurnLimits.stray_bytes``. Some servers spread
            an error document over several lines.
    """

    names_events = False
    ended: bool | None = None
    unreadable: str | None = None

    def __init__(self, limits: TurnLimits) -> None:
        self.bad_utf8 = False
        self.stray: list[bytes] = []
        self._most = limits.line_bytes
        self._stray_room = limits.stray_bytes
        self._keeps = False
        self._pieces: list[bytes] = []
        self._held = 0
        self._started = False

    def feed(self, chunk: bytes) -> Iterator[WireEvent]:
        """The lines that these bytes complete.

        Raises:
            LimitPassed: a line is longer than ``TurnLimits.line_bytes``.
        """
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            self._hold(line)
            yield from self._line(self._taken())
        if rest:
            self._hold(rest)

    def end(self) -> Iterable[WireEvent]:
        """At a clean end: the last line without its LF. The caller decides whether it counts."""
        self._keeps = True
        return self._line(without_cut_character(self._taken()))

    def broken(self) -> None:
        """The transport broke: the unfinished line is no line, but it may hold an error, so it becomes stray."""
        for _ in self.end():
            pass

    def refused(self, data: bytes) -> None:
        """Keep this line and all later ones as stray."""
        if not self._keeps:
            self._keeps = True
            self._keep(data)

    def _hold(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._held += len(piece)
        if self._held > self._most:
            raise LimitPassed("line_bytes")

    def _taken(self) -> bytes:
        line = b"".join(self._pieces)
        self._pieces, self._held = [], 0
        return line

    def _line(self, line: bytes) -> Iterator[WireEvent]:
        if not self._started:
            self._started = bool(line)
            line = line.removeprefix(BOM)
        line = line.strip(b" \t\r")
        if line:
            whole = repaired(line)
            damaged = whole is not line
            self.bad_utf8 |= damaged
            if self._keeps:
                self._keep(whole)
            yield b"", whole, damaged

    def _keep(self, line: bytes) -> None:
        if self._stray_room > 0:
            self._stray_room -= len(line) + 1
            self.stray.append(line)
