"""Who asks is told whether the replicas have an outcome, too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.servers.redis_server import RealServer
from tests.support.servers.sentinel import free_port
from tests.support.stream.harness import LOOK, PAY, Bench, calls
from tests.support.wait import wait_until
from toolonce.store.connections.replication import note_replicas
from toolonce.stream.harness.async_client import AsyncClient


@pytest.fixture
def pair(namespace: str) -> Iterator[tuple[Bench, RealServer]]:
    """A bench on a primary, and its replica."""
    port = free_port()
    with RealServer(port=str(port), bind="127.0.0.1", repl_diskless_sync_delay="0") as primary, RealServer() as replica:
        with replica.client() as client:
            client.execute_command("REPLICAOF", "127.0.0.1", str(port))
            wait_until(lambda: client.info("replication")["master_link_status"] == "up")
        bench = Bench(primary.url, namespace, PAY, LOOK)
        yield bench, replica
        bench.close()


def test_a_durable_wait_says_of_each_outcome_whether_a_failover_may_forget_it(pair: tuple[Bench, RealServer]) -> None:
    """Faults 6."""
    bench, replica = pair
    batch = bench.client.submit_calls(calls(1), turn_id="t")
    bench.run_next("one")

    def durable() -> bool:
        return all(outcome.is_durable for outcome in batch.wait(20, durable=True))

    wait_until(durable, description="the replica has it")
    replica.pause()
    assert not durable()
    assert not asyncio.run(_async_is_durable(bench))
    assert batch.outcomes[0].value == "one"
    replica.resume()
    wait_until(durable, description="the replica has it again")


async def _async_is_durable(bench: Bench) -> bool:
    async with AsyncClient(
        bench.client._connection.url, scope=bench.client.terms.scope, namespace=bench.store.space.name
    ) as client:
        batch = await client.batch("t")
        (outcome,) = await batch.wait(20, durable=True)
        return outcome.is_durable


def test_replicas_that_are_gone_are_asked_for_as_well(bench: Bench) -> None:
    """Faults 6."""
    batch = bench.client.submit_calls(calls(1), turn_id="t")
    bench.run_next("one")
    assert batch.wait(20, durable=True)[0].is_durable

    bench.store.run(note_replicas(bench.store.space, 1))
    assert not batch.wait(20, durable=True)[0].is_durable
