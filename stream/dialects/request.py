"""What a request holds: a user's words, the history in its place, and the switch against parallel calls.

Pure. Knows nothing of turns, calls and results, sends nothing, and names no dialect. Running calls one by one is not
decided here; for that, submit the turn with ``ordered=True``, which works everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from ..turns.errors import NotOffered
from ..turns.turn import Dialect
from .table import spec_of

Message = dict[str, Any]


def user_message(text: str, dialect: Dialect) -> Message:
    """What a user says, in the dialect's shape.

    Raises:
        UnknownDialect: no such dialect.
    """
    return spec_of(dialect).request.user_message(text)


def request_body(base: Mapping[str, Any], messages: Sequence[Message], dialect: Dialect) -> dict[str, Any]:
    """A request for a streamed turn: `base` (model, tools, ...) with the history in its place.

    Raises:
        UnknownDialect: no such dialect.
    """
    request = spec_of(dialect).request
    return {**base, request.HISTORY: list(messages), **request.STREAMED}


def forbid_parallel_calls(body: Mapping[str, Any], dialect: Dialect) -> dict[str, Any]:
    """A copy of a request body that allows at most one call; the body is not changed.

    A body without tools comes back as it is: these providers refuse the switch there.

    Raises:
        NotOffered: the provider has no such switch: both of Google's dialects, and Bedrock Converse unless ``modelId``
            in the body names Claude, whose own switch goes through it.
        UnknownDialect: no such dialect.
    """
    request = spec_of(dialect).request
    told = request.at_most_one_call(body)
    if told is None:
        raise NotOffered(
            f"{dialect} has no switch against parallel calls; submit with ordered=True to run them in turn"
        )
    return told if body.get(request.TOOLS) else dict(body)


def taking_turns(messages: Sequence[Message], dialect: Dialect) -> list[Message]:
    """The history with what one side says in a row as one message, for dialects where user and model take turns.

    So results and the question after them, or two questions of which the first got no turn, stay a valid history.

    Raises:
        UnknownDialect: no such dialect.
    """
    member = spec_of(dialect).request.TURN_MEMBER
    if member is None:
        return list(messages)
    rows = (list(row) for _, row in groupby(messages, key=lambda message: message["role"]))
    return [row[0] if len(row) == 1 else _one(row, member) for row in rows]


def _one(row: Sequence[Message], member: str) -> Message:
    said = [part for message in row for part in _parts(message[member])]
    return {**row[0], member: said}


def _parts(said: Any) -> list[Any]:
    return [{"type": "text", "text": said}] if isinstance(said, str) else said
