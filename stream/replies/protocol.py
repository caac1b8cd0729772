"""What every reply module offers, and the call as it is written into an assistant message.

A reply module knows one dialect's shapes: which items of a turn are calls, how results look, which ids are taken. It
knows no states, no failures and no other dialect.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .answers import CallReply
from .call_ids import IdRule

Message = dict[str, Any]
Ids = Sequence[str | None]


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call in the form that goes into a history: under the id to send, with arguments that are always valid."""

    call_id: str | None
    name: str
    arguments: dict[str, Any] | str
    kind: str

    @property
    def object_arguments(self) -> dict[str, Any]:
        """The arguments as an object, for a dialect that knows no free text: ``{"input": text}`` then."""
        return self.arguments if isinstance(self.arguments, dict) else {"input": self.arguments}


class ReplyModule(Protocol):
    """One dialect's way back."""

    @property
    def IDS(self) -> IdRule:  # noqa: N802  a module's constant
        ...

    def echo(self, items: Sequence[Message], ids: Ids) -> list[Message]:
        """The assistant message(s) from the provider's own items, unchanged but for ids that differ."""

    def write(self, text: str, calls: Sequence[WrittenCall]) -> list[Message]:
        """The assistant message(s) for a turn that came in another dialect."""

    def results(self, answers: Sequence[CallReply]) -> list[Message]:
        """The messages that answer all calls of one turn, in call order."""


def with_ids(items: Sequence[Message], ids: Ids, *, types: Collection[str], field: str) -> list[Message]:
    """The items, the calls among them under the ids to send. A paused turn has no ids, and its items stay as they are.

    Args:
        types: the type tags of calls.
        field: where a call carries its id.

    Raises:
        ValueError: the turn's items and its calls are not the same calls.
    """
    calls = [item for item in items if item.get("type") in types]
    if not ids:
        return list(items)
    if len(calls) != len(ids):
        raise ValueError(f"the turn has {len(ids)} calls, its items show {len(calls)}")
    left = iter(ids)
    return [item | {field: next(left)} if item.get("type") in types else item for item in items]
