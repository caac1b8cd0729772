"""The turn under construction: what the frames so far have said, independent of the dialect.

Decides nothing: a dialect's reader fills it, and ``verdict.py`` decides from it. Must not know any provider's fields.
"""

from __future__ import annotations

from json import dumps
from typing import Any

from ..wire.arguments import encodable, joined
from ..wire.frames import ProviderError
from ..wire.limits import LimitPassed, TurnLimits
from .drafts import CallComplete, CallOpened, DraftQueue
from .errors import StreamMisuse
from .turn import CallKind, TurnOutcome


class Violations(list[str]):
    """Violations of the provider's protocol, in order. Only the first one decides; at most 16 are kept."""

    def note(self, what: str) -> None:
        if len(self) < 16:
            self.append(what)


class OpenTurn:
    """Everything known about one turn so far.

    Attributes:
        max_tokens: the request's limit of output tokens; a turn that used all of them counts as cut.
        token_fields: members of ``usage`` that can hold the number of output tokens; the first one found counts.
        trust_done: ``[DONE]`` ends the turn properly also where no finish reason came.
        endings: each terminal event so far, as (outcome, the provider's stop reason).
        released: the release point was reached; a transport that breaks later changes nothing.
        ended: whether the framing's own end came; None where it has none.
        unreadable: why the bytes could not be read any further.
        usage_due: the release point was reached, and the usage is still to come.
        violations: violations of the protocol, in order.
        notes: oddities for the diagnostics, without influence on the outcome.
        looks_like: for a hint only: the dialect or form that the bytes look like, where it is another one.

    Raises:
        StreamMisuse: `max_tokens` is not a positive integer.
    """

    def __init__(
        self,
        limits: TurnLimits,
        max_tokens: int | None = None,
        *,
        token_fields: tuple[str, ...] = (),
        trust_done: bool = False,
    ) -> None:
        if max_tokens is not None and (type(max_tokens) is not int or max_tokens < 1):
            raise StreamMisuse(f"max_tokens={max_tokens!r}: pass the request's own limit (1 or more) or None")
        self.limits = limits
        self.max_tokens = max_tokens
        self.token_fields = token_fields
        self.trust_done = trust_done
        self.drafts = DraftQueue()
        self.calls: list[OpenCall] = []
        self.texts: list[str] = []
        self.turn_id: str | None = None
        self.usage: dict[str, Any] | None = None
        self.error: ProviderError | None = None
        self.bad_utf8 = False
        self.ended: bool | None = None
        self.unreadable: str | None = None
        self.limit: str | None = None
        self.released = False
        self.usage_due = False
        self.endings: list[tuple[TurnOutcome, str]] = []
        self.violations = Violations()
        self.notes: list[str] = []
        self.looks_like: str | None = None

    @property
    def text(self) -> str:
        return joined(self.texts)

    def add_text(self, piece: object) -> None:
        """Add a piece of visible text; anything but a string is ignored."""
        if type(piece) is str and piece:
            self.texts.append(piece)
            self.drafts.text(piece)

    def identify(self, turn_id: object) -> None:
        """Set the turn id; the first non-empty one stays."""
        if self.turn_id is None and isinstance(turn_id, str) and turn_id and encodable(turn_id):
            self.turn_id = turn_id

    def add_usage(self, usage: object) -> None:
        """Add usage counts; a newer value replaces an older one, member by member."""
        if isinstance(usage, dict):
            self.usage = {**self.usage, **usage} if self.usage else usage

    def end(self, outcome: TurnOutcome, word: str) -> None:
        self.endings.append((outcome, word))

    def fail(self, error: ProviderError) -> None:
        """Set the provider's error; the first one stays."""
        self.error = self.error or error

    def violate(self, what: str) -> None:
        self.violations.note(what)

    def open_call(self, kind: CallKind | None = "function") -> OpenCall:
        """Add a call, in order of first appearance.

        Raises:
            LimitPassed: the turn has too many calls.
        """
        if len(self.calls) >= self.limits.calls:
            raise LimitPassed("calls")
        call = OpenCall(self, kind)
        self.calls.append(call)
        return call


class OpenCall:
    """One call of a turn under construction.

    Attributes:
        number: 0-based, in order of first appearance.
        kind: None while it is not known yet.
        pieces: the non-empty pieces of its arguments in order: strings, and objects from inside frames.
        too_large: the argument text exceeded its limit and was discarded.
        opener: complete arguments that came with the event that opens the call; no piece may follow them.
        echo: other fields of the call that the provider expects back.
        shown: a draft has reported this call.
    """

    __slots__ = (
        "_drafts",
        "_room",
        "_size",
        "_violations",
        "call_id",
        "complete",
        "echo",
        "kind",
        "name",
        "number",
        "opener",
        "pieces",
        "shown",
        "too_large",
    )

    def __init__(self, turn: OpenTurn, kind: CallKind | None) -> None:
        # No reference to the turn: without a cycle both are freed at once, without the garbage collector.
        self._drafts = turn.drafts
        self._violations = turn.violations
        self._room = turn.limits.argument_chars
        self._size = 0
        self.number = len(turn.calls)
        self.kind = kind
        self.name = ""
        self.call_id: str | None = None
        self.pieces: list[Any] = []
        self.too_large = False
        self.opener: object = None
        self.echo: dict[str, Any] = {}
        self.shown = False
        self.complete = False

    def identify(self, call_id: object) -> None:
        """Set the call id; the first one that is not empty stays."""
        if not self.call_id:
            self.call_id = self._checked(call_id, "id")

    def rename(self, name: object) -> None:
        """Set the complete name. An empty one is ignored; a different one than before violates the protocol."""
        name = self._checked(name, "name")
        if name and self.name and name != self.name:
            self._violations.note("a call changed its name")
        elif name and not self.name:
            self.name = name
            self._show()

    def extend_name(self, piece: object) -> None:
        """Add a piece of the name, until the first arguments come. A piece equal to the name so far is a repetition."""
        piece = self._checked(piece, "name")
        if not self.name or self.pieces:
            self.rename(piece)
        elif piece and piece != self.name:
            self.name += piece
            self._show()

    def add(self, piece: object) -> None:
        """Add a piece of the arguments: a string, or a value from inside a frame."""
        if piece is None or piece == "" or self.too_large:
            return
        if type(piece) is str:
            self._size += len(piece)
            if self._size > self._room:
                self.too_large = True
                self.pieces = []
                return
        self.pieces.append(piece)
        if self.name:
            self._drafts.arguments(self.number, piece, self.pieces)

    def add_value(self, value: object) -> None:
        """Add arguments from a member that should hold an object; a string there stays a string and is not parsed."""
        self.add(dumps(value) if isinstance(value, str) and value else value)

    def open_with(self, value: object) -> None:
        """Add the arguments of the event that opens the call. An empty value is only a placeholder."""
        if value not in (None, "", {}):
            self.opener = value
            self.add_value(value)

    def replace(self, piece: object) -> None:
        """Replace the pieces by the final arguments. No draft is made, since drafts showed the pieces."""
        self.pieces = [piece]
        self.too_large = type(piece) is str and len(piece) > self._room

    def finish(self) -> None:
        """Note that the provider declared the arguments complete."""
        if self.name and not self.complete:
            self.complete = True
            self._drafts.add(CallComplete(self.number, self.name, self.call_id))

    def _show(self) -> None:
        self._drafts.add(CallOpened(self.number, self.name, self.call_id))
        if not self.shown:
            self.shown = True
            for count in range(len(self.pieces)):  # pieces that came before the name
                self._drafts.arguments(self.number, self.pieces[count], self.pieces)

    def _checked(self, value: object, what: str) -> str | None:
        if value is None or value == "":
            return None
        if isinstance(value, str) and encodable(value):
            return value
        self._violations.note(f"a call's {what} is not a usable string")
        return None
