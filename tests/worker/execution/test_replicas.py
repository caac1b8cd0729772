"""A worker that needs replicas: nothing mutating is entered while they are away, reads go on, no outcome is dropped."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer
from tests.support.servers.sentinel import primary_and_replica
from tests.support.wait import wait_until
from toolonce.store.connections.connection import Connection
from toolonce.store.connections.replication import note_replicas
from toolonce.store.model.states import State
from toolonce.worker.execution.persist import Persistence
from toolonce.worker.execution.replicas import Replicas, RequiredReplicas

ALL = ("--replicas", "all")


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[RealServer, RealServer]]:
    """A primary and its replica."""
    with primary_and_replica() as servers:
        yield servers


@pytest.fixture
def replica(pair: tuple[RealServer, RealServer]) -> Iterator[RealServer]:
    """The replica, which goes on after the test."""
    yield pair[1]
    pair[1].resume()


@pytest.fixture
def site(pair: tuple[RealServer, RealServer], namespace: str, tmp_path: Path) -> Iterator[Site]:
    """A site on the primary."""
    opened = Site(pair[0].url, namespace, tmp_path)
    yield opened
    opened.close()


def operations(site: Site, key: str) -> list[str]:
    return [event["op"] for event in site.record(key).history]


@pytest.mark.parametrize("tool", ["put", "put_with_begin"])
def test_nothing_mutating_is_entered_while_a_replica_is_away_and_reads_go_on(
    site: Site, replica: RealServer, tool: str
) -> None:
    """Faults 6."""
    with site.worker(more=ALL, lease_ms=10_000) as worker:
        site.wait_for(site.submit(tool, what="before"), State.SUCCEEDED)
        replica.pause()
        away = [site.submit(tool, what=f"away-{number}") for number in range(10)]
        looked = site.submit("look", what="around")

        site.wait_for(looked, State.SUCCEEDED)
        worker.wait_for_line("0 of 1 replicas answer")
        assert not site.outcome(_turn_of(site, looked)).is_durable
        queued = [State.QUEUED] * 10
        wait_until(lambda: [site.state(key) for key in away] == queued, description="what fell short is given back")
        assert (site.ledger.count("put away"), site.ledger.count("entered away")) == (0, 0)

        replica.resume()
        for key in away:
            record = site.wait_for(key, State.SUCCEEDED)
            assert record.fields.attempt == 1, "a claim that fell short counts no attempt"
            episodes = worker.output.count("replicas answer: mutating calls wait")
            assert operations(site, key).count("release") <= episodes, "one line an episode"
        assert site.ledger.count("put away") == 10


def _turn_of(site: Site, key: str) -> str:
    return site.record(key).fields.turn


def test_an_outcome_that_too_few_replicas_have_is_kept_and_says_so_until_they_have_it(
    site: Site, replica: RealServer
) -> None:
    """Faults 6."""
    with site.worker(more=ALL):
        key = site.submit("put_and_wait", what="slow")
        turn = _turn_of(site, key)
        wait_until(lambda: site.ledger.count("put slow"))
        replica.pause()
        site.ledger.open_gate("slow")
        site.wait_for(key, State.SUCCEEDED)

        wait_until(lambda: not site.outcome(turn).is_durable, description="the outcome is marked")
        assert site.outcome(turn).value == "slow"
        replica.resume()
        wait_until(lambda: site.outcome(turn).is_durable, description="the replica has it")
    assert site.ledger.count("put slow") == 1


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_an_effect_does_not_begin_that_too_few_replicas_know_of(
    site: Site, replica: RealServer, isolation: str
) -> None:
    """Faults 6: the replica goes between the claim and `call.begin()`."""
    tool = "put_behind_gate" if isolation == "thread" else "process_put_behind_gate"
    with site.worker(more=ALL):
        key = site.submit(tool, what="late")
        wait_until(lambda: site.ledger.count("entered late"))
        replica.pause()
        site.ledger.open_gate("late")
        wait_until(lambda: site.state(key) is State.QUEUED, description="it is given back")
        assert site.ledger.count("put late") == 0

        replica.resume()
        site.wait_for(key, State.SUCCEEDED)
    assert site.ledger.count("put late") == 1


def test_a_number_of_replicas_that_are_not_there_lets_reads_run_and_nothing_mutating(site: Site) -> None:
    """Faults 6."""
    with site.worker(more=("--replicas", "2")) as worker:
        paying = site.submit("put", what="never")
        site.wait_for(site.submit("look", what="around"), State.SUCCEEDED)
        assert "1 of 2 replicas answer" in worker.output
        assert (site.state(paying), site.ledger.count("put")) == (State.QUEUED, 0)
    with site.worker(more=("--replicas", "1")):
        site.wait_for(paying, State.SUCCEEDED)
    assert site.ledger.count("put never") == 1


def test_all_is_the_largest_number_ever_seen_also_where_the_replicas_are_gone_and_the_worker_is_new(
    own_server: RealServer, namespace: str, tmp_path: Path
) -> None:
    """Faults 6."""
    site = Site(own_server.url, namespace, tmp_path)
    site.connection.run(note_replicas(site.connection.space, 1))  # by a worker of another time
    with site.worker(more=ALL) as worker:
        worker.wait_for_line("0 of 1 replicas answer")
        paying = site.submit("put", what="never")
        site.wait_for(site.submit("look", what="around"), State.SUCCEEDED)
        assert (site.state(paying), site.ledger.count("put")) == (State.QUEUED, 0)
    site.close()


@pytest.mark.parametrize("required", ["all", 0])
def test_without_replicas_nothing_is_waited_for(
    own_server: RealServer, namespace: str, required: RequiredReplicas
) -> None:
    """Faults 6."""
    connection = Connection(own_server.url, namespace=namespace)
    replicas = Replicas(connection, Persistence(), required)
    replicas.start()

    assert replicas.confirm()
    assert replicas.write(connection, note_replicas(connection.space), what="a look") == (0, True)
    with own_server.client() as client:
        assert "cmdstat_wait" not in client.info("commandstats")
    replicas.stop(time.monotonic() + 2)
    connection.close()
