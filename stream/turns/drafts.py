"""Drafts: views of an unfinished turn, for a UI. A draft is never a fact and promises no execution.

Decides how arriving pieces are shown: adjacent pieces of one text or one call become one draft per feed.
Must not know dialects. A draft is not a ``ToolCall``, and nothing that admits calls accepts one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jiter import from_json

from ..wire.arguments import json_text, without_placeholder


@dataclass(frozen=True, slots=True)
class TextDraft:
    """More of the assistant's visible text."""

    text: str


@dataclass(frozen=True, slots=True)
class CallOpened:
    """The model began a call. Reported again with a longer name where the name itself arrives in pieces.

    ``call`` numbers the opened calls of the turn from 0. It is not the position, since a call may still be dropped.
    """

    call: int
    name: str
    call_id: str | None


@dataclass(frozen=True, slots=True)
class ArgumentsDraft:
    """More argument text of a call. ``text`` and ``value`` are computed on access, from all pieces so far."""

    call: int
    fragment: str
    _pieces: list[Any] = field(repr=False, compare=False)
    _count: int = field(repr=False, compare=False)

    @property
    def text(self) -> str:
        """The argument text up to and including this fragment."""
        return "".join(map(shown, without_placeholder(self._pieces[: self._count])))

    @property
    def value(self) -> Any:
        """The value so far without its unfinished parts, for display only; None where there is none yet."""
        try:
            return from_json(self.text.encode("utf-8", "replace"), partial_mode="trailing-strings")
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class CallComplete:
    """The provider declared the arguments of this call complete. The turn may still end badly."""

    call: int
    name: str
    call_id: str | None


@dataclass(frozen=True, slots=True)
class CallDropped:
    """An opened call that is not delivered. ``reason``: the turn's outcome, why it is refused, or ``duplicate``."""

    call: int
    name: str
    call_id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The last draft of every turn."""

    outcome: str


Draft = TextDraft | CallOpened | ArgumentsDraft | CallComplete | CallDropped | TurnEnded


def shown(piece: Any) -> str:
    """A piece of arguments as text; an object from inside a frame as JSON, and as "" where it is nested too deeply."""
    return piece if type(piece) is str else json_text(piece)


class DraftQueue:
    """Collects drafts between two feeds. ``text`` and ``arguments`` are on the hot path and only append."""

    def __init__(self) -> None:
        self._ready: list[Draft] = []
        self._run: list[str] = []
        self._call: int | None = None  # number of the call whose pieces are in _run; None: visible text
        self._pieces: list[Any] = []

    def text(self, piece: str) -> None:
        if self._call is not None:
            self._end_run()
            self._call = None
        self._run.append(piece)

    def arguments(self, call: int, piece: Any, pieces: list[Any]) -> None:
        """Add a piece that was just appended to ``pieces``, the list of all pieces of this call."""
        if self._call != call:
            self._end_run()
            self._call, self._pieces = call, pieces
        self._run.append(piece if type(piece) is str else shown(piece))

    def add(self, draft: Draft) -> None:
        self._end_run()
        self._ready.append(draft)

    def take(self) -> list[Draft]:
        """All drafts since the last call, in order."""
        self._end_run()
        ready, self._ready = self._ready, []
        return ready

    def _end_run(self) -> None:
        if not self._run:
            return
        fragment = "".join(self._run)
        self._run = []
        if self._call is None:
            self._ready.append(TextDraft(fragment))
        else:
            self._ready.append(ArgumentsDraft(self._call, fragment, self._pieces, len(self._pieces)))
