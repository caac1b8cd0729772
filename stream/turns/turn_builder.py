"""The turn that is being read: what the frames have told so far, in the words of the policy.

Decides nothing: a dialect writes it, ``verdict.py`` reads it. Must not know any provider's field names.
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
    """What broke the protocol, first one first: that one decides, and a stream of nonsense must not fill memory."""

    def note(self, what: str) -> None:
        if len(self) < 16:
            self.append(what)


class OpenTurn:
    """Everything learned about one turn.

    Attributes:
        max_tokens: the request's own limit of output tokens; a turn that used them up was cut, whatever it says.
        token_fields: the members of ``usage`` that may tell the number of output tokens; the first one counts.
        endings: what each terminal so far says, as (outcome, the provider's word).
        released: the release point was reached; a transport that breaks later changes nothing.
        unreadable: why the bytes could not be read any further.
        usage_due: the release point was reached, and the provider has yet to tell the usage.
        violations: what broke the protocol, first one first.
        notes: oddities that change nothing.
        looks_like: for a hint only: what the bytes look like, where that is not what they are read as.

    Raises:
        StreamMisuse: `max_tokens` is no whole number from 1 on.
    """

    def __init__(
        self, limits: TurnLimits, max_tokens: int | None = None, *, token_fields: tuple[str, ...] = ()
    ) -> None:
        if max_tokens is not None and (type(max_tokens) is not int or max_tokens < 1):
            raise StreamMisuse(f"max_tokens={max_tokens!r}: give the request's own limit, 1 or more, or None")
        self.limits = limits
        self.max_tokens = max_tokens
        self.token_fields = token_fields
        self.drafts = DraftQueue()
        self.calls: list[OpenCall] = []
        self.texts: list[str] = []
        self.turn_id: str | None = None
        self.usage: dict[str, Any] | None = None
        self.error: ProviderError | None = None
        self.bad_utf8 = False
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

    def say(self, piece: object) -> None:
        """A piece of visible text; anything that is no text says nothing."""
        if type(piece) is str and piece:
            self.texts.append(piece)
            self.drafts.text(piece)

    def identify(self, turn_id: object) -> None:
        """The first non-empty id stays."""
        if self.turn_id is None and isinstance(turn_id, str) and turn_id and encodable(turn_id):
            self.turn_id = turn_id

    def count(self, usage: object) -> None:
        """The newest usage counts win, member by member."""
        if isinstance(usage, dict):
            self.usage = {**self.usage, **usage} if self.usage else usage

    def end(self, outcome: TurnOutcome, word: str) -> None:
        self.endings.append((outcome, word))

    def fail(self, error: ProviderError) -> None:
        """The first error stays."""
        self.error = self.error or error

    def violate(self, what: str) -> None:
        self.violations.note(what)

    def open_call(self, kind: CallKind | None = "function") -> OpenCall:
        """A new call, in order of first appearance.

        Raises:
            LimitPassed: too many.
        """
        if len(self.calls) >= self.limits.calls:
            raise LimitPassed("calls")
        call = OpenCall(self, kind)
        self.calls.append(call)
        return call


class OpenCall:
    """One call while its turn is read.

    Attributes:
        number: 0-based, in order of first appearance.
        kind: None while it is not known yet.
        pieces: argument texts, and objects from inside frames, in order. Empty ones are left out.
        too_large: the text passed its limit and was let go.
        opener: filled arguments that came with the opening event; nothing may follow them.
        echo: sibling fields that the provider wants back.
        shown: drafts have told that this call exists.
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
        # The turn itself is not kept: without a cycle both are freed at once, and no collector has to find them.
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
        """The first id stays. Absent is None or empty."""
        if not self.call_id:
            self.call_id = self._checked(call_id, "id")

    def rename(self, name: object) -> None:
        """The name as a whole; empty says nothing, another one than before breaks the protocol."""
        name = self._checked(name, "name")
        if name and self.name and name != self.name:
            self._violations.note("a call changed its name")
        elif name and not self.name:
            self.name = name
            self._show()

    def extend_name(self, piece: object) -> None:
        """A name that may come in pieces: appended as long as no arguments were seen; an equal piece is a repeat."""
        piece = self._checked(piece, "name")
        if not self.name or self.pieces:
            self.rename(piece)
        elif piece and piece != self.name:
            self.name += piece
            self._show()

    def add(self, piece: object) -> None:
        """A piece of arguments: text, or a value from inside a frame."""
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
        """Arguments from a place where an object is due; a text there is a JSON string, never parsed as an object."""
        self.add(dumps(value) if isinstance(value, str) and value else value)

    def open_with(self, value: object) -> None:
        """Arguments in the event that opens the call: a placeholder when empty, else all there is."""
        if value not in (None, "", {}):
            self.opener = value
            self.add_value(value)

    def replace(self, piece: object) -> None:
        """A final form takes the place of the pieces. No draft: the pieces were shown, or the final itself."""
        self.pieces = [piece]
        self.too_large = type(piece) is str and len(piece) > self._room

    def finish(self) -> None:
        """The wire says that the arguments are whole."""
        if self.name and not self.complete:
            self.complete = True
            self._drafts.add(CallComplete(self.number, self.name, self.call_id))

    def _show(self) -> None:
        self._drafts.add(CallOpened(self.number, self.name, self.call_id))
        if not self.shown:
            self.shown = True
            for count in range(len(self.pieces)):  # what came before the name
                self._drafts.arguments(self.number, self.pieces[count], self.pieces)

    def _checked(self, value: object, what: str) -> str | None:
        if value is None or value == "":
            return None
        if isinstance(value, str) and encodable(value):
            return value
        self._violations.note(f"a call's {what} is no usable text")
        return None
