"""What a request holds in each dialect: a user's words, and the history in its place.

Pure. Knows nothing of turns, calls and results, and sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from ..replies.protocol import Message
from ..turns.errors import UnknownDialect

# The member of a request that holds the history.
_HISTORY = {
    "anthropic": "messages",
    "openai-chat": "messages",
    "openai-responses": "input",
    "google-generate": "contents",
    "google-interactions": "input",
}
# Where user and model take turns: the member that holds what one of them says.
_TAKES_TURNS = {"anthropic": "content", "google-generate": "parts"}


def user_message(dialect: str, text: str) -> Message:
    """What a user says, in the dialect's shape."""
    match dialect:
        case "google-generate":
            return {"role": "user", "parts": [{"text": text}]}
        case "google-interactions":
            return {"type": "user_input", "content": [{"type": "text", "text": text}]}
        case _:
            return {"role": "user", "content": text}


def request_body(dialect: str, base: Mapping[str, Any], messages: Sequence[Message]) -> dict[str, Any]:
    """A request for a streamed turn: `base` (model, tools, ...) with the history in its place.

    Raises:
        UnknownDialect: no such dialect.
    """
    if dialect not in _HISTORY:
        raise UnknownDialect(f"no dialect {dialect!r}; there are {', '.join(_HISTORY)}")
    streamed = {} if dialect == "google-generate" else {"stream": True}  # there the path says it
    return {**base, _HISTORY[dialect]: list(messages), **streamed}


def taking_turns(dialect: str, messages: Sequence[Message]) -> list[Message]:
    """The history with what one side says in a row as one message, for dialects where user and model take turns.

    So results and the question after them, or two questions of which the first got no turn, stay a valid history.
    """
    if dialect not in _TAKES_TURNS:
        return list(messages)
    member = _TAKES_TURNS[dialect]
    rows = (list(row) for _, row in groupby(messages, key=lambda message: message["role"]))
    return [row[0] if len(row) == 1 else _one(row, member) for row in rows]


def _one(row: Sequence[Message], member: str) -> Message:
    said = [part for message in row for part in _parts(message[member])]
    return {**row[0], member: said}


def _parts(said: Any) -> list[Any]:
    return [{"type": "text", "text": said}] if isinstance(said, str) else said
