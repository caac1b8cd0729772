"""Redis runs full: new calls are refused whole, and what was admitted still comes to rest."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import pytest
from redis.exceptions import OutOfMemoryError

from tests.support.servers.redis_server import RealServer
from tests.support.store.clocked_store import ClockedStore
from tests.support.store.live_store import LiveScene, LiveStore
from tests.support.store.scene import LEASE_MS, Scene, spec
from tests.support.wait import wait_until
from toolonce.store.connections import memory_watermark
from toolonce.store.connections.memory_watermark import Marks, Memory, read_memory, take, watermark
from toolonce.store.model.errors import StoreFull
from toolonce.store.model.states import State
from toolonce.store.operations import operators
from toolonce.store.operations import runs as execution
from toolonce.store.operations.admission import NewCall

READ = spec("look", "read")


def test_admission_stops_at_the_upper_mark_and_goes_on_below_the_lower(scene: Scene) -> None:
    def standing(used: int, allowed: int = 1000) -> bool:
        return scene.run(watermark(scene.space, Memory(used, allowed), Marks(stop=900, resume=800)))

    assert [standing(used) for used in (899, 900, 850, 800, 799)] == [False, True, True, True, False]
    assert not standing(10**12, 0), "no limit, never full"


def test_while_the_flag_stands_new_calls_are_refused_and_stored_ones_answered(scene: Scene) -> None:
    run = scene.start("a")
    scene.settle(run, 7)
    waiting = scene.submit("b")
    scene.run(watermark(scene.space, Memory(99, 100)))
    with pytest.raises(StoreFull, match="memory limit"):
        scene.admit(scene.call("a"), scene.call("c"))
    assert scene.admit(scene.call("a"))[0].value == 7
    scene.settle(scene.take(), 8)
    assert scene.state(waiting) is State.SUCCEEDED
    scene.run(watermark(scene.space, Memory(10, 100)))
    assert scene.admit(scene.call("c"))[0].state is State.QUEUED


@pytest.fixture
def full() -> Iterator[tuple[Scene, RealServer]]:
    """A scene with calls in all open states, on a server that has no memory left."""
    with RealServer(maxmemory="64mb") as server:
        store = ClockedStore.real(server.url, "full")
        scene = Scene(store, audited=False)
        for name in "abcdef":
            scene.submit(name, of=READ if name in "ab" else spec(begins=name == "c"))
        yield scene, server
        store.close()


def fill(server: RealServer) -> None:
    with server.client() as client:
        used = client.info("memory")["used_memory"]
        client.config_set("maxmemory", used // 2)
        with pytest.raises(OutOfMemoryError):
            client.set("filler", "x")


def test_the_server_says_how_much_memory_it_uses(full: tuple[Scene, RealServer]) -> None:
    scene, server = full
    assert scene.store.connection is not None
    memory = read_memory(scene.store.connection)
    assert memory is not None
    assert (memory.used > 0, memory.allowed) == (True, 64 * 2**20)
    assert not scene.run(watermark(scene.space, memory))
    fill(server)
    memory = read_memory(scene.store.connection)
    assert memory is not None
    assert scene.run(watermark(scene.space, memory))


def test_a_full_server_refuses_a_turn_whole(full: tuple[Scene, RealServer]) -> None:
    scene, server = full
    before = scene.stats()
    fill(server)
    with pytest.raises(StoreFull):
        scene.admit(scene.call("x"), scene.call("y"))
    assert scene.lookup(scene.call("x")) == (None,)
    assert scene.stats().counts == before.counts


def test_on_a_full_server_what_runs_is_renewed_settled_given_back_and_reclaimed(full: tuple[Scene, RealServer]) -> None:
    scene, server = full
    look_a, look_b, begins, done, lost, unknown = (scene.take() for _ in range(6))
    scene.settle(unknown, state=State.UNKNOWN)
    fill(server)
    assert scene.run(execution.begin(scene.space, begins)) == "begun"
    assert scene.run(execution.renew(scene.space, [done], lease_ms=LEASE_MS)) == ("kept",)
    assert scene.settle(done, "x" * 10_000).state is State.SUCCEEDED
    assert scene.retry_later(look_a, delay_ms=1) == "queued"
    assert scene.release(look_b) == "queued"
    assert scene.resolve(unknown.call) == "resolved"
    assert (
        scene.run(operators.cancel(scene.space, operators.Expected(look_b.call), scene.word())).verdict == "cancelled"
    )
    server_side = scene.store.redis
    server_side.config_set("maxmemory", 0)  # the test's clock is a key and needs memory to move
    scene.store.advance(LEASE_MS)
    fill(server)
    scene.reclaim()
    scene.tick()
    assert scene.states([begins.call, lost.call, look_a.call]) == [State.UNKNOWN, State.UNKNOWN, State.QUEUED]
    assert scene.stats().balanced


def test_on_a_full_server_what_was_admitted_is_taken_claimed_and_settled(full: tuple[Scene, RealServer]) -> None:
    """faults 15: what waits works itself off, also where someone else has filled the server."""
    scene, server = full
    jobs = scene.queued_jobs()
    fill(server)
    taken = [scene.run(take(scene.space, "default")) for _ in range(len(jobs) + 1)]
    assert taken == [*(job.encode() for job in jobs), None]
    for job in jobs:
        run = scene.claim(job)
        assert isinstance(run, execution.Run)
        assert scene.settle(run, 1).state is State.SUCCEEDED
    assert scene.stats().balanced


def test_far_over_its_limit_nothing_more_is_taken(
    full: tuple[Scene, RealServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """faults 15: results of any size must not fill the machine."""
    scene, server = full
    monkeypatch.setattr(memory_watermark, "LEAST_OVERDRAFT", 0)
    fill(server)
    with pytest.raises(StoreFull, match="far over its memory limit"):
        scene.run(take(scene.space, "default"))


def test_a_harness_alone_stops_in_time_and_all_that_it_queued_is_run_within_the_limit() -> None:
    """faults 15: no worker looks at the memory; admission leaves room for what each open call will still write."""
    with RealServer(maxmemory="16mb", appendfsync="no") as server:
        scene = LiveScene(LiveStore(server.url, "full"))
        scene.publish(READ)
        number = itertools.count()

        def admit_for_ever() -> None:
            while True:
                scene.admit(*(scene.call(f"{next(number)}", of=READ) for _ in range(50)))

        with pytest.raises(StoreFull, match="near its memory limit"):
            admit_for_ever()
        queued = scene.stats().counts["admitted"]
        assert queued > 500
        runs = [scene.take() for _ in range(queued)]
        for run in runs:
            scene.settle(run, "x" * 500)
        with server.client() as client:
            memory = client.info("memory")
        assert memory["used_memory"] < memory["maxmemory"], "and not one command was refused on the way"
        scene.store.close()


def test_a_few_large_results_do_not_stop_admission_for_the_sake_of_many_open_calls() -> None:
    """faults 15: how large the results of open calls will be is a guess, and may not fill the server by itself."""
    with RealServer(maxmemory="32mb", appendfsync="no") as server:
        scene = LiveScene(LiveStore(server.url, "full"))
        scene.publish(READ)
        for number in range(3):
            scene.succeeded(f"large {number}", "x" * 1_000_000, of=READ)
        scene.admit(*(scene.call(f"{number}", of=READ, held="approval") for number in range(500)))
        memory = read_memory(scene.live.connection)
        assert memory
        assert not scene.run(watermark(scene.space, memory))
        scene.store.close()


def test_what_never_ran_gives_its_arguments_back_but_for_a_beginning(scene: Scene) -> None:
    """faults 15"""
    text = json.dumps({"text": "ü" * 5000}, ensure_ascii=False)
    big = NewCall(scene.call("c").identity, "pay", text, 0, "c", spec())
    scene.admit(big)
    assert scene.record(big.identity.key).fields.args == text
    scene.cancel(big.identity.key)
    kept = json.loads(scene.record(big.identity.key).fields.args)
    assert kept["bytes"] == len(text.encode())
    assert text.startswith(kept["$cut"])
    assert 900 < len(kept["$cut"].encode()) <= 1024


def test_what_ran_keeps_its_arguments(scene: Scene) -> None:
    """faults 15"""
    text = json.dumps({"text": "x" * 5000})
    big = NewCall(scene.call("c").identity, "pay", text, 0, "c", spec())
    scene.admit(big)
    scene.settle(scene.take(), "done")
    assert scene.record(big.identity.key).fields.args == text


def test_one_turn_that_is_too_large_is_refused_and_stops_nobody_else() -> None:
    """faults 15"""
    with RealServer(maxmemory="16mb", appendfsync="no") as server:
        scene = LiveScene(LiveStore(server.url, "full"))
        scene.publish(READ)
        with pytest.raises(StoreFull):
            scene.admit(NewCall(scene.call("c").identity, "look", "x" * 15_000_000, 0, "c", READ))
        assert "full" not in scene.stats().flags

        def admitted() -> bool:  # once the server has given back the buffer of the large command
            try:
                return scene.admit(scene.call("d", of=READ))[0].state is State.QUEUED
            except StoreFull:
                return False

        wait_until(admitted, description="others are admitted")
        scene.store.close()
