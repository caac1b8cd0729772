"""Splits bytes into the lines of ``application/x-ndjson``, however the bytes are chunked.

Decides what a line is: it ends in LF and nowhere else, a CR before it is a blank, and a blank line means nothing. Must
not know what is inside a line. Python's `splitlines` would also split at U+2028, inside of a string.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .framing import BOM, WireEvent
from .limits import LimitPassed, TurnLimits
from .sse import repaired


class NdjsonReader:
    """Takes bytes and returns lines. It holds one unfinished line."""

    names_events = False
    ended: bool | None = None
    unreadable: str | None = None

    def __init__(self, limits: TurnLimits) -> None:
        self.bad_utf8 = False
        self.stray: list[bytes] = []
        self._most = limits.line_bytes
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
            yield from self._line()
        if rest:
            self._hold(rest)

    def end(self) -> Iterable[WireEvent]:
        """At a clean end: the last line without its LF. Whether it counts is for the caller to say."""
        return self._line()

    def broken(self) -> None:
        """The transport broke: nothing more is a line, but an error in the last one stays."""
        self.stray += [line for _, line, _ in self._line()]

    def _hold(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._held += len(piece)
        if self._held > self._most:
            raise LimitPassed("line_bytes")

    def _line(self) -> Iterator[WireEvent]:
        line = b"".join(self._pieces)
        self._pieces, self._held = [], 0
        if not self._started:
            self._started = bool(line)
            line = line.removeprefix(BOM)
        line = line.strip(b" \t\r")
        if line:
            whole = repaired(line)
            damaged = whole is not line
            self.bad_utf8 |= damaged
            yield b"", whole, damaged
