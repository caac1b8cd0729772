"""The interface of a dialect's reader, and safe access to fields of frames, whose types nobody guarantees.

Decides what every dialect must answer about a turn. Must not know any provider.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from .assembly import AssembledCalls
from .turn import Dialect
from .turn_builder import OpenCall, OpenTurn

Frame = dict[str, Any]


class DialectReader(ABC):
    """Reads the frames of one turn into an ``OpenTurn``. One instance per turn; no frame makes it raise."""

    dialect: ClassVar[Dialect]
    kinds: ClassVar[frozenset[str]] = frozenset()
    """The frame types that this dialect knows; empty where its frames have no type."""

    ends_with_done: ClassVar[bool] = False
    """Whether ``[DONE]`` is this dialect's own end of a stream."""

    def __init__(self, turn: OpenTurn) -> None:
        self.turn = turn

    @abstractmethod
    def read(self, kind: str, frame: Frame) -> None:
        """Read one frame of a stream; ``kind`` is its type, or the event's name where the JSON has no type."""

    @abstractmethod
    def body(self, document: Frame) -> None:
        """Read a whole response that was not streamed, including its stop reason."""

    def bodies(self, documents: list[Frame]) -> bool:
        """A whole response that is a list of documents; False where this dialect has none such."""
        return False

    @abstractmethod
    def contradiction(self, calls: int) -> str | None:
        """How the stop reason contradicts this number of calls; None where it does not."""

    @abstractmethod
    def assistant(self, assembled: AssembledCalls) -> list[Frame]:
        """The turn as the provider expects it back, see ``TurnResult.assistant``."""

    def done(self) -> None:  # noqa: B027  most dialects do not need it
        """Note that ``[DONE]`` arrived."""

    def close(self) -> None:  # noqa: B027
        """Called once at the end of the stream, before the verdict: note what only the end shows."""

    def unchanged(self) -> list[Frame]:
        """The content to send back for a paused turn, with its calls unchanged."""
        return []

    def object_in(self, frame: Frame, name: str) -> Frame:
        """The member if it is an object, else an empty one.

        A value that is neither an object nor empty may have held a part of a call, so it violates the protocol."""
        value = frame.get(name)
        if isinstance(value, dict):
            return value
        if value:
            self.turn.violate(f"{name} is not an object")
        return {}

    def objects_in(self, frame: Frame, name: str) -> list[Frame]:
        """The objects in a member that is a list; other values as for `object_in`. Any other item is a violation."""
        value = frame.get(name)
        if isinstance(value, list):
            found = mappings(value)
            if found is not value:
                self.turn.violate(f"an item of {name} is not an object")
            return found
        if value:
            self.turn.violate(f"{name} is not a list")
        return []

    def counted(self) -> list[OpenCall]:
        """The calls that the harness must run (not those of the provider's own tools), in order of first appearance."""
        return self.turn.calls

    def shown(self) -> list[OpenCall]:
        """The same calls in the order of ``assistant``."""
        return self.counted()


def mapping(value: object) -> Frame:
    """The value if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[Frame]:
    """The objects among the items of a list; empty where it is not a list. Callers must not change the result."""
    if not isinstance(value, list):
        return []
    for item in value:
        if not isinstance(item, dict):
            return [item for item in value if isinstance(item, dict)]
    return value  # nearly always: no copy is needed


def text(value: object) -> str:
    """The value if it is a string, else ""."""
    return value if isinstance(value, str) else ""


def without(frame: Frame, *names: str) -> Frame:
    """A copy without these members and without members that are null."""
    return {name: value for name, value in frame.items() if name not in names and value is not None}
