"""The function calls of one generateContent turn: complete in one part, or in pieces over several parts.

Decides which piece belongs to which call, and when a call in pieces is complete. Must not know finish reasons.
"""

from __future__ import annotations

from typing import Any

from ...turns.reader import Frame, mappings, without
from ...turns.turn_builder import OpenCall, OpenTurn
from ...wire.json_path import BadPath, PathAssembly
from ...wire.json_scan import Mark

_KNOWN = frozenset({"id", "name", "args", "partialArgs", "willContinue"})
# A double holds every integer below this size. Larger ones have lost digits before they are sent.
_EXACT = 2**53
_NON_FINITE = {"NaN", "Infinity", "-Infinity"}


class _Partial:
    """A call in pieces. After the last piece an empty ``functionCall`` may follow, which ends it as well."""

    __slots__ = ("args", "assembly", "call", "filled")

    def __init__(self, call: OpenCall) -> None:
        self.call = call
        self.assembly = PathAssembly()
        self.args: Any = None
        self.filled = False


class GenerateCalls:
    """All calls of one turn, in order of first appearance."""

    def __init__(self, turn: OpenTurn) -> None:
        self._turn = turn
        self._open: list[_Partial] = []
        self._ended: OpenCall | None = None

    def take(self, piece: object, siblings: Frame) -> OpenCall | None:
        """Read one ``functionCall``; returns the call where it is a new one.

        Args:
            siblings: the other members of its part (signatures), to be sent back with the call.
        """
        if not isinstance(piece, dict):
            self._turn.violate("functionCall is not an object")
            return None
        partial = self._continued(piece)
        ended, self._ended = self._ended, None
        if partial is None and not piece and ended is not None:
            ended.echo |= siblings  # it only ends the call again
            return None
        if partial is not None:
            self._piece(partial, piece)
            partial.call.echo |= siblings
            return None
        return self._begin(piece, siblings)

    def close(self) -> None:
        """Called at the end of the turn: a call that still waits for pieces was cut."""
        if self._open:
            self._turn.violate("a call still waits for more of its arguments")

    def _continued(self, piece: Frame) -> _Partial | None:
        """The open call that a piece continues: it has the same id, or neither id nor name."""
        if not self._open:
            return None
        if call_id := piece.get("id"):
            return next((partial for partial in self._open if partial.call.call_id == call_id), None)
        return self._open[-1] if not piece.get("name") else None

    def _begin(self, piece: Frame, siblings: Frame) -> OpenCall:
        call = self._turn.open_call()
        call.identify(piece.get("id"))
        call.rename(piece.get("name"))
        call.echo = siblings if piece.keys() <= _KNOWN else siblings | without(piece, *_KNOWN)
        if piece.get("willContinue") or piece.get("partialArgs"):
            partial = _Partial(call)
            self._open.append(partial)
            self._piece(partial, piece)
        else:
            call.add_value(piece.get("args"))
            call.finish()
        return call

    def _piece(self, partial: _Partial, piece: Frame) -> None:
        if "name" in piece:
            partial.call.rename(piece["name"])
        if piece.get("args"):
            if partial.args is not None:
                self._turn.violate("one call has complete arguments twice")
            partial.args = piece["args"]
        if (pieces := piece.get("partialArgs")) is not None:
            values = mappings(pieces)
            if values != pieces:
                self._turn.violate("partialArgs is not a list of objects")
            partial.filled |= bool(values)
            for value in values:
                self._place(partial, value)
        if not piece.get("willContinue"):
            self._end(partial, empty=not piece)

    def _place(self, partial: _Partial, value: Frame) -> None:
        path = value.get("jsonPath")
        try:
            if not isinstance(path, str):
                raise BadPath("a piece of arguments without its path")
            if isinstance(value.get("stringValue"), str):
                partial.assembly.extend(path, value["stringValue"], going_on=bool(value.get("willContinue")))
            elif (scalar := _scalar(value)) is not _NO_VALUE:
                partial.assembly.put(path, scalar)
            elif value.get("willContinue"):
                partial.assembly.extend(path, "", going_on=True)
            else:
                partial.assembly.close(path)
        except BadPath as bad:
            self._turn.violate(str(bad))

    def _end(self, partial: _Partial, *, empty: bool) -> None:
        self._open.remove(partial)
        self._ended = None if empty else partial.call
        if partial.filled and partial.args is not None:
            self._turn.violate("one call has its arguments complete and in pieces")
            return
        try:
            partial.call.add_value(partial.assembly.value() if partial.filled else partial.args)
        except BadPath as bad:
            self._turn.violate(str(bad))
        partial.call.finish()


_NO_VALUE: Any = object()


def _scalar(value: Frame) -> Any:
    """The number, boolean or null of a piece; ``_NO_VALUE`` where it has none."""
    number = value.get("numberValue")
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        return _number(number)
    if isinstance(number, Mark):
        return float("inf")  # more digits than any double holds
    if isinstance(number, str) and number in _NON_FINITE:
        return float(number)
    if isinstance(value.get("boolValue"), bool):
        return value["boolValue"]
    return None if "nullValue" in value else _NO_VALUE


def _number(number: float) -> int | float:
    if isinstance(number, int):
        return number if abs(number) < _EXACT else _as_double(number)
    return int(number) if number.is_integer() and abs(number) < _EXACT else number


def _as_double(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
