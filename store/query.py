"""Plain commands that only read, sent together in one round trip: each sees the store at one moment, all of them not
at the same one.

For the one question that is asked most, what is stored about these calls: a script would cost the server twice as
much, to build its functions and to turn each field into a value of Lua and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .scripts import Arg, Invocation

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Query(Generic[T_co]):
    """One question, not yet asked: the commands, and how to read their replies, which come in the same order."""

    commands: Sequence[tuple[Arg, ...]]
    read: Callable[[Sequence[Any]], T_co]


Operation = Invocation[T] | Query[T]
"""What a connection runs; both may be sent again after a lost reply."""
