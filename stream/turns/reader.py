"""What every dialect has to answer, and how it reads fields from frames whose shape nobody promised.

Decides the seam between the bytes and the providers' words. Must not know any provider.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from .assembly import AssembledCalls
from .turn import Dialect
from .turn_builder import OpenCall, OpenTurn

Frame = dict[str, Any]


class DialectReader(ABC):
    """Reads the frames of one turn into an ``OpenTurn``. One per turn; it never raises for what a frame holds."""

    dialect: ClassVar[Dialect]
    kinds: ClassVar[frozenset[str]] = frozenset()
    """The kinds of frames that are known here; empty where frames have none."""

    def __init__(self, turn: OpenTurn) -> None:
        self.turn = turn

    @abstractmethod
    def read(self, kind: str, frame: Frame) -> None:
        """One frame of a stream; ``kind`` is its type, or the event's name where the JSON names none."""

    @abstractmethod
    def body(self, document: Frame) -> None:
        """A whole response that was not streamed, up to and with its terminal."""

    @abstractmethod
    def contradiction(self, calls: int) -> str | None:
        """What does not fit between the terminal and this number of calls; None when all fits."""

    @abstractmethod
    def assistant(self, settled: AssembledCalls) -> list[Frame]:
        """What the provider wants to see again, see ``TurnResult.assistant``."""

    def done(self) -> None:  # noqa: B027  most dialects do not need it
        """``[DONE]`` came."""

    def close(self) -> None:  # noqa: B027
        """The turn ended properly or the stream did: say what only the end can tell."""

    def unchanged(self) -> list[Frame]:
        """What to send back for a paused turn, calls as they came."""
        return []

    def counted(self) -> list[OpenCall]:
        """The calls that are ours to judge, in order of first appearance."""
        return self.turn.calls

    def shown(self) -> list[OpenCall]:
        """The same calls in the order in which ``assistant`` shows them."""
        return self.counted()


def mapping(value: object) -> Frame:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[Frame]:
    """The objects among the items of a list, not to be changed; nothing where it is no list."""
    if not isinstance(value, list):
        return []
    for item in value:
        if not isinstance(item, dict):
            return [item for item in value if isinstance(item, dict)]
    return value  # as nearly always: a copy would cost more than the look


def text(value: object) -> str:
    """The value if it is a text, else the empty one."""
    return value if isinstance(value, str) else ""


def without(frame: Frame, *names: str) -> Frame:
    """A copy that lacks some members, and every member that is null."""
    return {name: value for name, value in frame.items() if name not in names and value is not None}
