"""Splits bytes into the elements of one JSON array of objects, or into server-sent events, however they are chunked.

Google's ``streamGenerateContent`` answers with such an array where the request lacks ``alt=sse``. Decides where an
element ends. Must not know what is inside an element.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from .framing import BOM, Framing, WireEvent
from .limits import LimitPassed, TurnLimits
from .sse import SseReader, repaired

_BLANKS = b" \t\r\n"
_BLANK = re.compile(rb"[ \t\r\n]*")
# Up to the next brace outside of strings, or up to a string that does not end in this block.
_UP_TO_BRACE = re.compile(rb'[^"{}]*(?:"[^"\\]*(?:\\.[^"\\]*)*"[^"{}]*)*', re.DOTALL)
# The rest of a string, up to its closing quote, or up to a backslash at the end of the block.
_REST_OF_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
# An element that is whole and of few levels, nearly every one: matched at once, where the loop needs a turn a brace.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_WHOLE = rb'\{[^"{}]*+(?:' + _STRING + rb'[^"{}]*+)*+\}'
for _ in range(6):
    _WHOLE = rb'\{[^"{}]*+(?:(?:' + _STRING + rb"|" + _WHOLE + rb')[^"{}]*+)*+\}'
_ELEMENT = re.compile(_WHOLE, re.DOTALL)
# The expressions need memory for each escape: so much is matched at a time.
_BLOCK = 1 << 16
_QUOTE, _OPEN = b'"{'

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
    "first": "an array element that is not an object",
    "after": "array elements without a comma between them",
    "next": "an array element that is not an object",
    "closed": "something after the closing bracket of the array",
}


class JsonArrayReader:
    """Takes bytes and returns elements, and none after the first wrong byte. It holds one unfinished element.

    Attributes:
        unreadable: why the bytes are not an array; None while they fit one.
        ended: the closing bracket came.
        stray: the lines from the first wrong byte on, up to ``TurnLimits.stray_bytes``.
    """

    names_events = False

    def __init__(self, limits: TurnLimits) -> None:
        self.bad_utf8 = False
        self.unreadable: str | None = None
        self.ended: bool | None = False
        self._most = limits.event_bytes
        self._stray_room = limits.stray_bytes
        self._stray: list[bytes] = []
        self._state = "start"
        self._depth = 0
        self._in_text = False
        self._escaped = False
        self._pieces: list[bytes] = []
        self._held = 0

    @property
    def stray(self) -> list[bytes]:
        return b"".join(self._stray).splitlines()

    def feed(self, chunk: bytes) -> Iterator[WireEvent]:
        """The elements that these bytes complete.

        Raises:
            LimitPassed: an element is longer than ``TurnLimits.event_bytes``.
        """
        for start in range(0, len(chunk), _BLOCK):
            yield from self._feed(chunk if len(chunk) <= _BLOCK else chunk[start : start + _BLOCK])

    def end(self) -> Iterator[WireEvent]:
        """At a clean end: an unfinished element was cut, and is dropped."""
        self._check_rest()
        yield from ()

    def broken(self) -> None:
        """The transport broke: an unfinished element is dropped."""
        self._check_rest()

    def refused(self, data: bytes) -> None:
        """Nothing to do: an element is no plain line."""

    def _feed(self, block: bytes) -> Iterator[WireEvent]:
        at = 0
        while at < len(block) and not self.unreadable:
            if self._state != "element":
                at = self._between(block, at)
                continue
            end = self._inside(block, at)
            self._hold(block[at:end])
            at = end
            if self._depth == 0:
                yield self._dispatch()
        if self.unreadable and self._stray_room > 0:
            self._stray.append(block[at : at + self._stray_room])
            self._stray_room -= len(self._stray[-1])

    def _check_rest(self) -> None:
        """Note bytes that are not UTF-8 in a cut element; a character that was cut itself is not an error."""
        try:
            b"".join(self._pieces).decode()
        except UnicodeDecodeError as wrong:
            self.bad_utf8 |= wrong.reason != "unexpected end of data"

    def _between(self, block: bytes, at: int) -> int:
        """The position after the next character that is not whitespace; an element starts at its brace."""
        blank = _BLANK.match(block, at)
        assert blank is not None
        at = blank.end()
        if at == len(block):
            return at
        state = _BETWEEN[self._state].get(block[at : at + 1])
        if state is None:
            self.unreadable = _WRONG[self._state]
            return at
        self._state, self.ended = state, state == "closed"
        return at if state == "element" else at + 1

    def _inside(self, block: bytes, at: int) -> int:
        """The position after the end of the element, or after the block. Its content is parsed as JSON later."""
        if self._escaped:
            self._escaped, at = False, at + 1
        if self._depth == 0 and (element := _ELEMENT.match(block, at)):
            return element.end()
        while at < len(block):
            found = (_REST_OF_STRING if self._in_text else _UP_TO_BRACE).match(block, at)
            assert found is not None
            at = found.end()
            if at == len(block):
                return at
            mark, at = block[at], at + 1
            if mark == _QUOTE:
                self._in_text = not self._in_text
            elif self._in_text:
                self._escaped = True
            else:
                self._depth += 1 if mark == _OPEN else -1
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
    """The framing of a response of either form: the first character that is not whitespace decides."""

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
        first = self._head.removeprefix(BOM).lstrip(_BLANKS)
        if BOM.startswith(self._head):
            return ()  # a part of the byte order mark: nothing is decided yet
        if not first:
            self._head = _shortened(self._head)
            return ()
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

    def refused(self, data: bytes) -> None:
        """See both framings."""
        if self._chosen is not None:
            self._chosen.refused(data)

    def _choose(self, framing: Callable[[TurnLimits], Framing], head: bytes) -> Iterable[WireEvent]:
        self._chosen = framing(self._limits)
        self._head = b""
        return self._chosen.feed(head)


def _shortened(head: bytes) -> bytes:
    """Whitespace of the same meaning to both framings: byte order mark, one line end, the last blank."""
    mark = BOM if head.startswith(BOM) else b""
    blanks = head[len(mark) :]
    return mark + (b"\n" if b"\n" in blanks or b"\r" in blanks else b"") + blanks[-1:]
