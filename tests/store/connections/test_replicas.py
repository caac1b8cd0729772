"""Calls whose claim too few replicas have: they wait without a pointer, lose nothing, and go on in their order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.redis_server import RealServer
from tests.support.servers.sentinel import primary_and_replica
from tests.support.store.live_store import LiveScene, LiveStore
from tests.support.store.scene import LEASE_MS, Scene, spec
from toolonce.store.connections.async_connection import AsyncConnection
from toolonce.store.connections.connection import Connection, Patience
from toolonce.store.connections.replication import acknowledged, following, known_replicas, note_replicas
from toolonce.store.connections.server_info import read_info
from toolonce.store.model.errors import StoreUnavailable
from toolonce.store.model.states import State
from toolonce.store.operations import recovery, runs
from toolonce.store.operations.operation import Invocation
from toolonce.store.operations.runs import Ending, NotRun, Run

LOOK = spec("look", "read")


def claim_barred(scene: Scene) -> Run | NotRun:
    """As a worker claims while too few replicas answer."""
    job = scene.pop()
    assert job is not None
    delivery = scene.delivery(job).forgettable
    return scene.run(runs.claim(scene.space, delivery, lease_ms=LEASE_MS, bar_mutating=True))


def resume(scene: Scene, *, enough: bool = True) -> int:
    return scene.run(recovery.tick(scene.space, enough_replicas=enough))[0].counts["woken"]


def test_a_mutating_call_is_not_claimed_while_too_few_replicas_answer_and_a_read_is(scene: Scene) -> None:
    """Faults 6."""
    paying, looking = scene.submit("a"), scene.submit("b", of=LOOK)

    assert claim_barred(scene) == NotRun("parked", "replicas")
    ran = claim_barred(scene)

    assert isinstance(ran, Run)
    assert (ran.call, scene.queued_jobs()) == (looking, [])
    assert scene.state(paying) is State.QUEUED
    assert scene.record(paying).fields.attempt == 0


def test_calls_that_wait_for_replicas_go_on_in_their_order_once_enough_answer(scene: Scene) -> None:
    """Faults 6."""
    calls = [scene.submit(name) for name in "abc"]
    for _ in calls:
        claim_barred(scene)

    assert (resume(scene, enough=False), scene.queued_jobs()) == (0, [])
    assert resume(scene) == 3
    assert [scene.take().call for _ in calls] == calls


def test_a_claim_that_fell_short_is_given_back_first_in_line_and_counts_no_attempt(scene: Scene) -> None:
    """Faults 6."""
    first, second = scene.submit("a"), scene.submit("b")
    run = scene.take()
    claim_barred(scene)

    assert [scene.release(run, "replicas") for _ in "12"] == ["queued", "queued"]
    assert [event["op"] for event in scene.record(first).history] == ["admit", "claim", "release"]
    resume(scene)
    again = scene.take()

    assert (again.call, again.attempt, scene.take().call) == (first, 1, second)


def test_a_call_that_waits_for_replicas_can_be_cancelled_and_expires(scene: Scene) -> None:
    """Faults 6."""
    cancelled, expired = scene.submit("a"), scene.submit("b", of=spec("pay", deadline_ms=60_000))
    for _ in "ab":
        claim_barred(scene)

    scene.cancel(cancelled)
    scene.store.advance(61_000)
    scene.tick()

    assert scene.states([cancelled, expired]) == [State.CANCELLED, State.EXPIRED]
    assert resume(scene) == 0


def test_the_same_outcome_again_changes_its_marks_and_nothing_else(scene: Scene) -> None:
    """Faults 6."""
    run = scene.start("a")
    for marks in ('{"durable": false}', ""):
        heard = scene.run(runs.settle(scene.space, run, Ending(State.SUCCEEDED, '"done"', marks=marks)))
        assert heard.verdict == "settled"
        (outcome,) = scene.lookup(scene.call("a"))
        assert outcome
        assert outcome.is_durable is not bool(marks)
        assert outcome.value == "done"
    assert [event["op"] for event in scene.record(run.call).history] == ["admit", "claim", "settle"]


def test_a_read_that_was_claimed_while_replicas_were_away_says_so_and_proves_no_step_back(scene: Scene) -> None:
    """Faults 6."""
    scene.submit("b", of=LOOK)
    run = claim_barred(scene)
    assert isinstance(run, Run)
    (outcome,) = scene.lookup(scene.call("b", of=LOOK))
    assert outcome
    assert not outcome.is_durable

    scene.store.redis.delete(scene.space.record(run.call), f"{scene.space.root}fence")
    scene.store.run(runs.renew(scene.space, [run], lease_ms=LEASE_MS))
    assert "went_back" not in scene.store.redis.hgetall(f"{scene.space.root}flags")


def test_the_number_of_replicas_never_falls(scene: Scene) -> None:
    """Faults 6."""
    assert [scene.run(note_replicas(scene.space, seen)) for seen in (1, 2, 0, 1)] == [1, 2, 2, 2]
    assert scene.run(known_replicas(scene.space)) == 2


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[RealServer, RealServer]]:
    """A primary and its replica."""
    with primary_and_replica() as servers:
        yield servers


def _on_a_new_line(connection: Connection, invocation: Invocation[Any]) -> int:
    """How many replicas have what it wrote, asked as after a lost reply."""
    link = connection.dedicated()
    try:
        return link.run(acknowledged(invocation, 1, wait_ms=200))[1]
    finally:
        link.close()


def test_a_claim_begin_or_outcome_that_comes_again_still_waits_for_the_replicas(
    pair: tuple[RealServer, RealServer], namespace: str
) -> None:
    """Faults 6: WAIT on a new connection, which has written nothing, counts a replica that has nothing of it."""
    primary, replica = pair
    store = LiveStore(primary.url, namespace)
    scene, connection = LiveScene(store), store.connection
    scene.submit("a")
    claim = runs.claim(scene.space, scene.delivery(scene.pop() or ""), lease_ms=60_000)
    run, acked = connection.run(acknowledged(claim, 1, wait_ms=30_000))
    assert isinstance(run, Run)
    assert acked == 1
    ending = Ending(State.SUCCEEDED, '"done"')
    begin, settle = runs.begin(scene.space, run), runs.settle(scene.space, run, ending)
    replica.pause()
    try:
        assert [_on_a_new_line(connection, word) for word in (claim, begin, begin, settle, settle)] == [0] * 5
    finally:
        replica.resume()
    assert connection.run(acknowledged(note_replicas(scene.space), 1, wait_ms=30_000))[1] == 1
    store.close()


def test_only_replicas_that_follow_are_counted(pair: tuple[RealServer, RealServer]) -> None:
    """Faults 6."""
    connection = Connection(pair[0].url)
    assert len(following(read_info(connection, "replication"))) == 1
    told = {"slave0": "ip=h,port=1,state=online", "slave1": "ip=i,port=2,state=wait_bgsave"}
    assert following({"connected_slaves": "2", **told}) == [("h", 1)]
    connection.close()


def test_a_primary_that_takes_no_writes_for_want_of_replicas_is_named_so_and_asked_again(
    pair: tuple[RealServer, RealServer], namespace: str
) -> None:
    """Faults 6: min-replicas-to-write."""
    with pair[0].client() as client:
        client.config_set("min-replicas-to-write", 2)
        connection = Connection(pair[0].url, namespace=namespace, patience=Patience(5, 0))
        with pytest.raises(StoreUnavailable, match="min-replicas-to-write"):
            connection.run(note_replicas(connection.space, 1))
        with pytest.raises(StoreUnavailable, match="min-replicas-to-write"):
            asyncio.run(_note_async(pair[0].url, namespace))
        client.config_set("min-replicas-to-write", 0)
        assert connection.run(note_replicas(connection.space, 1)) == 1
        connection.close()


async def _note_async(url: str, namespace: str) -> None:
    connection = AsyncConnection(url, namespace=namespace, patience=Patience(5, 0))
    try:
        await connection.run(note_replicas(connection.space, 1))
    finally:
        await connection.close()
