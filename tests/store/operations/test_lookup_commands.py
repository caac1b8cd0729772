"""Several commands in one round trip: their replies never answer another question, whatever goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis.exceptions import ResponseError

from tests.support.servers.redis_server import RealServer
from toolonce.store.connections.async_connection import AsyncConnection
from toolonce.store.connections.connection import Connection
from toolonce.store.operations.operation import Query

Run = Callable[[Query[Any]], Any]


@pytest.fixture(params=["blocking", "async"])
def run(redis_server: RealServer, request: pytest.FixtureRequest) -> Iterator[Run]:
    """Runs queries one after the other on one line."""
    if request.param == "blocking":
        connection = Connection(redis_server.url)
        yield connection.run
        connection.close()
        return
    with asyncio.Runner() as runner:
        several = AsyncConnection(redis_server.url, connections=1)
        yield lambda query: runner.run(several.run(query))
        runner.run(several.close())


def echoes(*words: str) -> Query[tuple[str, ...]]:
    return Query([("ECHO", word) for word in words], lambda replies: tuple(reply.decode() for reply in replies))


def test_replies_come_in_the_order_of_the_commands(run: Run) -> None:
    assert run(echoes("a", "b", "c")) == ("a", "b", "c")


def test_an_error_among_the_replies_leaves_none_behind_for_the_next_question(run: Run) -> None:
    fails = Query([("ECHO", "a"), ("NOSUCHCOMMAND",), ("ECHO", "c")], lambda replies: replies)

    with pytest.raises(ResponseError, match="NOSUCHCOMMAND"):
        run(fails)

    assert run(echoes("d", "e")) == ("d", "e")
