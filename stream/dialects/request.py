"""Builds request bodies: user messages, the system prompt, the history, and the option that forbids parallel calls.

Pure: sends nothing. Must not know turns, calls and results, nor any single dialect. To run the calls of a turn one by
one, submit it with ``ordered=True``, which works with every provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from ..turns.errors import NotOffered
from ..turns.turn import Dialect
from .table import spec_of

Message = dict[str, Any]


def user_message(content: str | Sequence[Message], dialect: Dialect) -> Message:
    """A user's message in the form of the dialect.

    Args:
        content: a text; or content blocks (parts for ``google-generate``) in the provider's own form, such as text and
            images. Ollama has no blocks: there, each is an object with ``content`` (text), ``images``, or both.

    Raises:
        UnknownDialect: no such dialect.
        TypeError: the content is neither a text nor a list of objects.
        ValueError: there is no block.
    """
    request = spec_of(dialect).request
    if isinstance(content, str):
        return request.user_message(content)
    if not isinstance(content, Sequence) or not all(isinstance(block, dict) for block in content):
        raise TypeError("a user's message is a text or a list of content blocks, which are objects")
    if not content:
        raise ValueError("a user's message needs at least one content block")
    return request.user_message(content)


def request_body(
    base: Mapping[str, Any], messages: Sequence[Message], dialect: Dialect, *, system: str = ""
) -> dict[str, Any]:
    """The request body for a streamed turn: `base` (model, tools, ...) with the history added.

    Args:
        system: the system prompt, put where the provider wants it: in the history's first message, or in a member of
            its own. It is no part of the history, so it may change between requests, and no trimming cuts it.

    Raises:
        UnknownDialect: no such dialect.
    """
    request = spec_of(dialect).request
    body = {**base, request.HISTORY: list(messages), **request.STREAMED}
    return request.with_system(body, system) if system else body


def forbid_parallel_calls(body: Mapping[str, Any], dialect: Dialect) -> dict[str, Any]:
    """A copy of a request body that allows at most one call; the body is not changed.

    A body without tools is returned unchanged, since providers refuse the option there.

    Raises:
        NotOffered: the provider has no such option. That is so for both of Google's dialects, for Ollama and Cohere,
            and for Bedrock Converse unless ``modelId`` in the body names a Claude model, whose own option is then used.
        UnknownDialect: no such dialect.
    """
    request = spec_of(dialect).request
    told = request.at_most_one_call(body)
    if told is None:
        raise NotOffered(
            f"{dialect} has no option that forbids parallel calls; submit with ordered=True to run them one by one"
        )
    return told if body.get(request.TOOLS[0]) else dict(body)


def taking_turns(messages: Sequence[Message], dialect: Dialect) -> list[Message]:
    """The history with adjacent messages of one role joined, for dialects in which user and model must alternate.

    So the history stays valid where a question follows results, or follows a question that got no turn.

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
