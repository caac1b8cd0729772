"""A history in groups of messages that belong together, so that trimming cuts no call from its results.

Pure. Decides where a group ends; how a dialect pairs calls and results, its request module says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from itertools import chain

from ..dialects.request import taking_turns
from ..dialects.table import spec_of
from ..replies.protocol import Message
from ..turns.errors import StreamMisuse
from ..turns.turn import Dialect

_NOT_BY_THE_MODEL = ("user", "system", "developer")


def groups(messages: Iterable[Message], dialect: Dialect) -> list[list[Message]]:
    """Copies of the messages: each one of the user alone, each turn of the model with the results of its calls."""
    found: list[list[Message]] = []
    waiting = _Waiting(dialect)
    goes_on = False
    for message in messages:
        if not goes_on or (_is_asked(message) and waiting.is_empty):
            found.append([])
        found[-1].append(deepcopy(message))
        has_results = waiting.see(message)
        goes_on = not waiting.is_empty or not (has_results or _is_asked(message))
    return found


def to_send(groups: Sequence[Sequence[Message]], dialect: Dialect) -> list[Message]:
    """The trimmed history as it is sent.

    Raises:
        StreamMisuse: nothing is left, or a call was cut from its results.
    """
    messages = list(chain.from_iterable(groups))
    if not messages:
        raise StreamMisuse("trim left no message; keep at least the last question")
    require_pairs(messages, dialect, "trim")
    return taking_turns(messages, dialect)


def require_pairs(messages: Iterable[Message], dialect: Dialect, what: str) -> None:
    """Check that each call has its results behind it, before the next message of the user.

    Raises:
        StreamMisuse: one has none, or a result has no call.
    """
    waiting = _Waiting(dialect)
    for message in messages:
        if _is_asked(message) and not spec_of(dialect).request.pairs(message)[1]:
            waiting.require_empty(what)
        waiting.see(message, what)
    waiting.require_empty(what)


class _Waiting:
    """The calls of a history that have no result yet."""

    def __init__(self, dialect: Dialect) -> None:
        self._pairs = spec_of(dialect).request.pairs
        self._open: list[str] = []

    @property
    def is_empty(self) -> bool:
        return not self._open

    def see(self, message: Message, what: str = "") -> bool:
        """Take the next message; whether it has results. With `what`, a result without a call is an error."""
        calls, results = self._pairs(message)
        for result in results:
            if result in self._open:
                self._open.remove(result)
            elif what:
                raise StreamMisuse(f"{what}: the result for {result!r} has no call before it; keep whole groups")
        self._open.extend(calls)
        return bool(results)

    def require_empty(self, what: str) -> None:
        if self._open:
            raise StreamMisuse(f"{what}: the call {self._open[0]!r} has no result behind it; keep whole groups")


def _is_asked(message: Message) -> bool:
    return message.get("role") in _NOT_BY_THE_MODEL or message.get("type") == "user_input"
