"""Redis runs full: new calls are refused whole, and what was admitted still comes to rest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis.exceptions import OutOfMemoryError

from tests.support.clocked_store import ClockedStore
from tests.support.redis_server import RealServer
from tests.support.scene import LEASE_MS, Scene, spec
from toolonce.store import execution, operators
from toolonce.store.errors import StoreFull
from toolonce.store.pressure import Marks, Memory, read_memory, watermark
from toolonce.store.states import State

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
    with pytest.raises(StoreFull):
        scene.run(execution.begin(scene.space, begins))
    assert scene.run(execution.renew(scene.space, [done], lease_ms=LEASE_MS)) == ("kept",)
    assert scene.settle(done, "x" * 10_000).state is State.SUCCEEDED
    assert scene.retry_later(look_a, delay_ms=1) == "queued"
    assert scene.release(look_b) == "queued"
    assert scene.resolve(unknown.call) == "resolved"
    assert scene.run(operators.cancel(scene.space, operators.Seen(look_b.call), scene.word())).verdict == "cancelled"
    server_side = scene.store.redis
    server_side.config_set("maxmemory", 0)  # the test's clock is a key and needs memory to move
    scene.store.advance(LEASE_MS)
    fill(server)
    scene.reclaim()
    scene.tick()
    assert scene.states([begins.call, lost.call, look_a.call]) == [State.QUEUED, State.UNKNOWN, State.QUEUED]
    assert scene.stats().balanced


def test_a_claim_on_a_full_server_happens_whole_or_not_at_all(full: tuple[Scene, RealServer]) -> None:
    scene, server = full
    jobs = scene.queued_jobs()
    fill(server)
    try:
        run = scene.claim(jobs[0])
    except StoreFull:
        assert scene.states([jobs[0][:32]]) == [State.QUEUED]
    else:
        assert isinstance(run, execution.Run)
        assert scene.settle(run, 1).state is State.SUCCEEDED
    assert scene.stats().balanced
