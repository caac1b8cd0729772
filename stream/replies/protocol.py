"""The interface of a dialect's reply module, and a call as it is written into an assistant message.

A reply module decides the message forms of one dialect: which items of a turn are calls, how results are written, and
which ids are accepted. It must not know states, failures and other dialects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .answers import CallReply
from .call_ids import IdRule

Message = dict[str, Any]
Ids = Sequence[str | None]


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as it is written into a history: with the id to send, and with arguments that are always valid."""

    call_id: str | None
    name: str
    arguments: dict[str, Any] | str
    kind: str

    @property
    def object_arguments(self) -> dict[str, Any]:
        """The arguments as an object, for dialects without free text: ``{"input": text}`` for a custom call."""
        return self.arguments if isinstance(self.arguments, dict) else {"input": self.arguments}


class ReplyModule(Protocol):
    """The reply module of a dialect."""

    @property
    def IDS(self) -> IdRule:  # noqa: N802  a module's constant
        ...

    def echo(self, items: Sequence[Message], ids: Ids) -> list[Message]:
        """The assistant message(s) from the provider's own items; only ids may be replaced."""

    def write(self, text: str, calls: Sequence[WrittenCall]) -> list[Message]:
        """The assistant message(s) for a turn of another dialect."""

    def results(self, answers: Sequence[CallReply]) -> list[Message]:
        """The messages that answer all calls of one turn, in call order."""


def with_ids(items: Sequence[Message], ids: Ids, *, types: Collection[str], field: str) -> list[Message]:
    """The items with the ids to send in their calls. A paused turn has no ids, and its items stay unchanged.

    Args:
        types: the type tags of calls.
        field: the member of a call that holds its id.

    Raises:
        ValueError: the number of calls in the items is not that of the ids.
    """
    return rename_calls(items, ids, lambda item: item.get("type") in types, lambda item, sent: item | {field: sent})


def rename_calls(
    items: Sequence[Message],
    ids: Ids,
    is_call: Callable[[Message], bool],
    rename: Callable[[Message, str | None], Message],
) -> list[Message]:
    """The same for a dialect whose calls are told otherwise: `rename` puts an id into one of them.

    Raises:
        ValueError: as for `with_ids`.
    """
    if not ids:
        return list(items)
    count = sum(map(is_call, items))
    if count != len(ids):
        raise ValueError(f"the turn has {len(ids)} calls, but its items contain {count}")
    left = iter(ids)
    return [rename(item, next(left)) if is_call(item) else item for item in items]


def with_tool_call_ids(message: Message, ids: Ids) -> Message:
    """A chat message, the entries of its ``tool_calls`` under the ids to send; unchanged where it has none."""
    if not message.get("tool_calls"):
        return message
    calls = [call | {"id": call_id} for call, call_id in zip(message["tool_calls"], ids, strict=True)]
    return message | {"tool_calls": calls}
