"""What a connection runs beside a script alone: plain commands that only read, and a script with a WAIT behind it.

Plain commands are sent together in one round trip: each sees the store at one moment, all of them not at the same one.
They are for the one question that is asked most, what is stored about these calls: a script would cost the server
twice as much, to build its functions and to turn each field into a value of Lua and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .operation import Arg, Invocation

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Query(Generic[T_co]):
    """One question, not yet asked: the commands, and how to read their replies, which come in the same order."""

    commands: Sequence[tuple[Arg, ...]]
    read: Callable[[Sequence[Any]], T_co]


@dataclass(frozen=True, slots=True)
class Acknowledged(Generic[T_co]):
    """A script that writes, and in the same round trip, on the same connection, WAIT: how many replicas have it.

    Attributes:
        replicas, wait_ms: WAIT answers once so many replicas have the write, or after this time.
        read: from the script's reply and the number of replicas that have its write.
    """

    invocation: Invocation[Any]
    replicas: int
    wait_ms: int
    read: Callable[[Any, int], T_co]

    @property
    def wait(self) -> tuple[Arg, ...]:
        return ("WAIT", self.replicas, self.wait_ms)


Operation = Invocation[T] | Query[T] | Acknowledged[T]
"""What a connection runs; each may be sent again after a lost reply."""
