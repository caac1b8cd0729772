"""The server's clock goes back, or another server takes over: what becomes of leases, and of what waits for a time."""

from __future__ import annotations

import pytest

from tests.support.servers.redis_server import RealServer
from tests.support.store.live_store import LiveScene, LiveStore
from tests.support.store.scene import GRACE_MS, LEASE_MS, Scene, spec
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations import recovery, runs
from toolonce.store.operations.runs import NotRun

HOUR_MS = 3_600_000
READ = spec("look", "read")


def marks(scene: Scene) -> dict[str, str]:
    return dict(scene.store.redis.hgetall(f"{scene.space.root}marks"))


def go_back(scene: Scene, ms: int = HOUR_MS) -> None:
    scene.store.advance(-ms)


@pytest.mark.parametrize("swept", [True, False], ids=["swept before", "never swept before"])
def test_a_dead_workers_lease_is_not_lengthened_when_the_clock_goes_back(real_scene: Scene, swept: bool) -> None:
    """faults 24: it ends one lease after the step back, not an hour and a lease."""
    run = real_scene.start()
    if swept:
        real_scene.reclaim()
    go_back(real_scene)

    assert real_scene.reclaim()["leases_given_anew"] == 1
    real_scene.store.advance(LEASE_MS - 1)
    real_scene.reclaim()
    assert real_scene.state(run.call) is State.RUNNING
    real_scene.store.advance(2)
    assert real_scene.reclaim()["unknown"] == 1


def test_a_step_back_gives_a_live_workers_lease_anew_once(real_scene: Scene) -> None:
    """faults 24"""
    run = real_scene.start()
    real_scene.store.advance(LEASE_MS - 10)
    real_scene.reclaim()
    go_back(real_scene, 5_000)
    assert real_scene.record(run.call).lease_left_ms == 5_010
    real_scene.reclaim()
    assert real_scene.record(run.call).lease_left_ms == LEASE_MS
    assert "leases_given_anew" not in real_scene.reclaim()
    assert real_scene.run(runs.renew(real_scene.space, [run], lease_ms=LEASE_MS)) == ("kept",)


def test_leases_of_workers_with_other_lengths_keep_their_own(real_scene: Scene) -> None:
    real_scene.submit("a")
    real_scene.submit("b")
    short, long = real_scene.take(lease_ms=2_000), real_scene.take(lease_ms=HOUR_MS)
    real_scene.reclaim()
    go_back(real_scene, 60_000)
    real_scene.reclaim()
    assert [real_scene.record(run.call).lease_left_ms for run in (short, long)] == [2_000, HOUR_MS]


def test_a_step_back_is_told_and_a_clock_that_goes_on_is_not(real_scene: Scene) -> None:
    real_scene.start()
    for _ in range(3):
        real_scene.store.advance(LEASE_MS // 4)
        real_scene.reclaim()
        real_scene.tick()
    go_back(real_scene, 20)  # as much as an adjustment of a clock may take back
    real_scene.reclaim()
    assert "clock_back_at" not in real_scene.stats().flags
    go_back(real_scene)
    real_scene.tick()
    assert int(real_scene.stats().flags["clock_back_by"]) == pytest.approx(HOUR_MS, abs=LEASE_MS)


def test_after_a_change_of_primary_every_lease_gets_one_full_lease_before_any_is_reclaimed(real_scene: Scene) -> None:
    """faults 24, DESIGN 7: the new primary's clock runs an hour ahead; it says nothing about these leases."""
    run = real_scene.start()
    real_scene.reclaim()
    assert marks(real_scene)["server"]
    real_scene.store.redis.hset(f"{real_scene.space.root}marks", "server", "another server's run id")
    real_scene.store.advance(HOUR_MS)

    assert real_scene.reclaim() == {"requeued": 0, "failed": 0, "unknown": 0, "cancelled": 0, "leases_given_anew": 1}
    assert real_scene.record(run.call).lease_left_ms == LEASE_MS
    assert "clock_back_at" not in real_scene.stats().flags
    real_scene.store.advance(LEASE_MS + 1)
    assert real_scene.reclaim()["unknown"] == 1


def test_a_server_that_was_started_anew_lets_its_workers_ask_before_it_takes_their_leases(
    own_server: RealServer,
) -> None:
    """They could not renew while it was away."""
    scene = LiveScene(LiveStore(own_server.url, "clock"))
    scene.submit("a")
    run = scene.take(lease_ms=1_000)
    scene.reclaim()
    own_server.kill9()
    own_server.start()
    wait_until(lambda: (scene.record(run.call).lease_left_ms or 0) <= 0, description="the lease ran out meanwhile")

    assert scene.reclaim()["leases_given_anew"] == 1
    assert scene.run(runs.renew(scene.space, [run], lease_ms=1_000)) == ("kept",)
    assert scene.settle(run, "done").state is State.SUCCEEDED
    scene.live.close()


def test_what_waits_in_the_queue_is_run_after_a_step_back(real_scene: Scene) -> None:
    """faults 24: it was queued at a time that is yet to come, and is no delayed call for that."""
    call = real_scene.submit()
    go_back(real_scene)
    assert real_scene.take().call == call


def test_a_delayed_call_waits_no_longer_than_it_was_to_after_a_step_back(real_scene: Scene) -> None:
    """faults 24"""
    run = real_scene.start(of=READ)
    real_scene.tick()
    real_scene.retry_later(run, delay_ms=5_000)
    go_back(real_scene)
    real_scene.tick()
    assert real_scene.claim(run.idempotency_key) == NotRun("parked", "later")
    real_scene.store.advance(5_001)
    assert real_scene.tick()["available"] == 1
    assert real_scene.take().call == run.call


def test_deadlines_and_lifetimes_of_many_calls_are_cut_in_bounded_steps(real_scene: Scene) -> None:
    """faults 24: a deadline of an hour is an hour, also where the clock went back twice."""
    queued = [real_scene.submit(f"q{n}") for n in range(7)]
    asked = [real_scene.submit(f"h{n}", held="approval") for n in range(7)]
    real_scene.tick()
    for _ in range(2):
        go_back(real_scene, 100 * HOUR_MS)
        for _ in range(6):
            real_scene.run(recovery.tick(real_scene.space, most=3))
    assert set(real_scene.states(queued)) == {State.QUEUED}
    assert set(real_scene.states(asked)) == {State.HELD}
    assert not [name for name in marks(real_scene) if name.startswith("cut_")]

    real_scene.store.advance(max(spec().deadline_ms, spec().approval_ms) + 1)
    for _ in range(6):
        real_scene.tick()
    assert set(real_scene.states([*queued, *asked])) == {State.EXPIRED}


def test_a_lost_pointer_is_found_after_a_step_back(real_scene: Scene) -> None:
    """faults 24: the look before was at a time that is yet to come."""
    real_scene.submit()
    real_scene.repush()
    real_scene.pop()
    go_back(real_scene)
    real_scene.repush()
    real_scene.store.advance(GRACE_MS + 1)
    assert real_scene.repush()["repushed"] == 1


def test_an_unknown_call_is_reconciled_after_a_step_back(real_scene: Scene) -> None:
    """faults 24"""
    run = real_scene.start()
    real_scene.lose(run)
    ask = recovery.reconcile(real_scene.space, ["pay"], lease_ms=LEASE_MS, worker="sweeper")
    assert real_scene.run(ask)
    real_scene.run(recovery.reconcile_later(real_scene.space, run.call, wait_ms=1_000, heard="nothing"))
    assert real_scene.run(ask) is None
    go_back(real_scene)
    assert real_scene.run(ask)
    assert real_scene.run(ask) is None
