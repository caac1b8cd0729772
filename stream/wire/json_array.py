"""Bytes to the elements of one JSON array of objects, whatever pieces the bytes come in; or to server-sent events.

Google's ``streamGenerateContent`` answers with such an array where the request lacks ``alt=sse``. Decides where an
element ends. Must not know what is inside an element.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from .framing import Framing, WireEvent
from .limits import LimitPassed, TurnLimits
from .sse import SseReader, repaired

_BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\n"
_OUTSIDE = re.compile(rb'["{}\[\]]')
_INSIDE = re.compile(rb'["\\]')

# What may stand between two elements: state -> character -> the state after it. An element is read in between.
_BETWEEN: dict[str, dict[bytes, str]] = {
    "start": {b"[": "first"},
    "first": {b"{": "element", b"]": "closed"},
    "after": {b",": "next", b"]": "closed"},
    "next": {b"{": "element"},
    "closed": {},
}
_WRONG = {
    "start": "no JSON array",
    "first": "an array element that is no object",
    "after": "array elements without a comma between them",
    "next": "an array element that is no object",
    "closed": "something after the closing bracket of the array",
}


class JsonArrayReader:
    """Feed it bytes, take elements. It holds one unfinished element, and reads nothing behind what is no array.

    Attributes:
        unreadable: what is wrong with the bytes; None as long as nothing is.
        ended: the closing bracket came.
    """

    names_events = False

    def __init__(self, limits: TurnLimits) -> None:
        self.bad_utf8 = False
        self.stray: list[bytes] = []
        self.unreadable: str | None = None
        self.ended: bool | None = False
        self._most = limits.event_bytes
        self._state = "start"
        self._depth = 0
        self._in_text = False
        self._escaped = False
        self._pieces: list[bytes] = []
        self._held = 0

    def feed(self, chunk: bytes) -> Iterator[WireEvent]:
        """The elements that these bytes complete.

        Raises:
            LimitPassed: an element is longer than ``TurnLimits.event_bytes``.
        """
        at = 0
        while at < len(chunk) and not self.unreadable:
            if self._state != "element":
                at = self._between(chunk, at)
                continue
            end = self._inside(chunk, at)
            self._hold(chunk[at:end])
            at = end
            if self._depth == 0:
                yield self._dispatch()

    def end(self) -> Iterator[WireEvent]:
        """At a clean end: an element that is not whole was cut, and is none."""
        yield from ()

    def broken(self) -> None:
        """The transport broke: what is not whole is no element."""

    def _between(self, chunk: bytes, at: int) -> int:
        """The place behind the next character that is no blank; an element begins with its brace."""
        rest = chunk[at:].lstrip(_BLANKS)
        at = len(chunk) - len(rest)
        if not rest:
            return at
        state = _BETWEEN[self._state].get(rest[:1])
        if state is None:
            self.unreadable = _WRONG[self._state]
            return at
        self._state, self.ended = state, state == "closed"
        return at if state == "element" else at + 1

    def _inside(self, chunk: bytes, at: int) -> int:
        """The place behind the end of the element, or behind the chunk."""
        if self._escaped and at < len(chunk):
            self._escaped, at = False, at + 1
        while at < len(chunk):
            found = (_INSIDE if self._in_text else _OUTSIDE).search(chunk, at)
            if found is None:
                return len(chunk)
            at = found.end()
            mark = found[0]
            if mark == b'"':
                self._in_text = not self._in_text
            elif mark == b"\\":
                self._escaped = at == len(chunk)
                at += not self._escaped
            else:
                self._depth += 1 if mark in b"{[" else -1
                if self._depth == 0:
                    return at
        return at

    def _hold(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._held += len(piece)
        if self._held > self._most:
            raise LimitPassed("event_bytes")

    def _dispatch(self) -> WireEvent:
        element = b"".join(self._pieces)
        self._pieces, self._held, self._state = [], 0, "after"
        whole = repaired(element)
        damaged = whole is not element
        self.bad_utf8 |= damaged
        return b"", whole, damaged


class ArrayOrEvents:
    """The framing of a response that is either: the first character that is no blank tells which."""

    names_events = False

    def __init__(self, limits: TurnLimits) -> None:
        self._limits = limits
        self._head = b""
        self._chosen: Framing | None = None

    @property
    def bad_utf8(self) -> bool:
        return self._chosen is not None and self._chosen.bad_utf8

    @property
    def unreadable(self) -> str | None:
        return self._chosen.unreadable if self._chosen else None

    @property
    def stray(self) -> list[bytes]:
        return self._chosen.stray if self._chosen else []

    @property
    def ended(self) -> bool | None:
        return self._chosen.ended if self._chosen else None

    def feed(self, chunk: bytes) -> Iterable[WireEvent]:
        """The events or elements that these bytes complete. Raises as both framings do."""
        if self._chosen is not None:
            return self._chosen.feed(chunk)
        self._head += chunk
        first = self._head.removeprefix(_BOM).lstrip(_BLANKS)
        if not first or _BOM.startswith(self._head):
            return ()  # blanks, or a part of the mark: nothing is told yet
        return self._choose(JsonArrayReader, first) if first[:1] == b"[" else self._choose(SseReader, self._head)

    def end(self) -> Iterable[WireEvent]:
        """At a clean end: see both framings."""
        if self._chosen is None:
            return [*self._choose(SseReader, self._head), *self.end()]
        return self._chosen.end()

    def broken(self) -> None:
        """The transport broke: see both framings."""
        if self._chosen is None:
            list(self._choose(SseReader, self._head))
        assert self._chosen
        self._chosen.broken()

    def _choose(self, framing: Callable[[TurnLimits], Framing], head: bytes) -> Iterable[WireEvent]:
        self._chosen = framing(self._limits)
        self._head = b""
        return self._chosen.feed(head)
