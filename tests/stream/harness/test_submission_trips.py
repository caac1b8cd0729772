"""How often a submission asks the store: new turns are admitted at once, and repeats still get their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.support.servers.redis_server import RealServer
from tests.support.stream.harness import PAY, Bench, calls
from toolonce.store.connections.connection import Connection
from toolonce.store.model.errors import KeyringMissing
from toolonce.store.model.states import State
from toolonce.store.operations.operation import Invocation
from toolonce.store.operations.tools import publish
from toolonce.stream.harness.async_client import AsyncClient
from toolonce.stream.harness.client import Client

STRICTER = replace(PAY, version="2", schema={"type": "object", "properties": {"n": {"type": "string"}}})


@pytest.fixture
def own_bench(own_server: RealServer) -> Iterator[Bench]:
    """On a server whose settings a test may change."""
    bench = Bench(own_server.url, "trips", PAY)
    yield bench
    own_server.client().config_set("maxmemory", "0")
    bench.close()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the store is asked, one name an operation: a script's, or "read"."""
    names: list[str] = []
    run: Callable[..., Any] = Connection.run

    def noting(connection: Connection, operation: Any) -> Any:
        names.append(operation.script.name if isinstance(operation, Invocation) else "read")
        return run(connection, operation)

    monkeypatch.setattr(Connection, "run", noting)
    return names


def warmed(bench: Bench) -> Client:
    """A client that knows the published tools, and nothing of any turn but its own."""
    client = bench.another_client()
    client.submit_calls(calls(0), turn_id="warm")
    return client


def test_a_new_turn_is_admitted_in_one_round_trip(bench: Bench, asked: list[str]) -> None:
    client = warmed(bench)
    asked.clear()

    client.submit_calls(calls(1, 2), turn_id="t")

    assert asked == ["admit"]


def test_a_client_that_repeats_its_own_turn_reads_and_admits_nothing(bench: Bench, asked: list[str]) -> None:
    client = warmed(bench)
    first = client.submit_calls(calls(1, 2), turn_id="t").outcomes
    asked.clear()

    outcomes = client.submit_calls(calls(1, 2), turn_id="t").outcomes

    assert asked == ["read"]
    assert outcomes == first


def settled(bench: Bench) -> None:
    bench.client.submit_calls(calls(1), turn_id="t")
    bench.run_next("kept")


def answers_as_stored(client: Client) -> None:
    (outcome,) = client.submit_calls(calls(1), turn_id="t").outcomes
    assert (outcome.state, outcome.value, outcome.replayed) == (State.SUCCEEDED, "kept", True)


def test_a_fresh_client_gets_the_stored_outcome_although_todays_schema_refuses_the_call(bench: Bench) -> None:
    settled(bench)
    client = warmed(bench)
    bench.scene.run(publish(bench.scene.space, [STRICTER]))
    client._cache.forget()
    client.submit_calls(calls(2), turn_id="read the specs again")

    answers_as_stored(client)
    assert bench.admitted == 3


def test_a_fresh_client_without_keys_gets_the_stored_outcome_of_a_tool_that_has_secrets_by_now(bench: Bench) -> None:
    settled(bench)
    client = warmed(bench)
    bench.scene.run(publish(bench.scene.space, [replace(PAY, version="2", secret=("$.n",))]))
    client._cache.forget()
    with pytest.raises(KeyringMissing):
        client.submit_calls(calls(2), turn_id="read the specs again")

    answers_as_stored(client)


@pytest.mark.parametrize(
    ("setting", "value"), [("min-replicas-to-write", "1"), ("maxmemory", "1")], ids=["no writes", "full"]
)
def test_a_fresh_client_gets_the_stored_outcome_from_a_server_that_takes_no_writes(
    own_bench: Bench, setting: str, value: str
) -> None:
    """The turn is new to the client, so that it tries to admit it, and is refused."""
    settled(own_bench)
    client = warmed(own_bench)
    own_bench.store.redis.config_set(setting, value)

    answers_as_stored(client)


def test_under_asyncio_a_fresh_client_gets_it_as_well(own_bench: Bench) -> None:
    async def ask() -> Any:
        async with AsyncClient(own_bench.url, scope="tenant-1/talk-1", namespace=own_bench.namespace) as client:
            await client.submit_calls(calls(0), turn_id="warm")
            own_bench.store.redis.config_set("min-replicas-to-write", "1")
            return (await client.submit_calls(calls(1), turn_id="t")).outcomes

    settled(own_bench)
    (outcome,) = asyncio.run(ask())

    assert (outcome.value, outcome.replayed) == ("kept", True)
