"""Groups 2 and 8 of the faults that others met: lost and stuck jobs, leases, locks; full stores, clocks, backlogs."""

from __future__ import annotations

from dataclasses import replace

from tests.support.servers.redis_server import RealServer
from tests.support.store.clocked_store import ClockedStore
from tests.support.store.scene import LEASE_MS, Scene, spec
from toolonce.store.model.states import SETTLED, State
from toolonce.store.operations import recovery
from toolonce.store.operations import runs as execution
from toolonce.store.operations.operation import load
from toolonce.store.operations.recovery import Retention
from toolonce.store.operations.runs import NotRun

READ = spec("look", "read", max_attempts=3)


def test_a_second_submission_with_other_arguments_replaces_nothing(scene: Scene) -> None:
    """O2-01: two enqueues under one id, and the second one's arguments won."""
    scene.submit("k", {"v": "a"})
    assert scene.admit(scene.call("k", {"v": "b"}))[0].conflict
    assert not scene.admit(scene.call("k", {"v": "a"}))[0].conflict
    assert len(scene.queued_jobs()) == 1
    assert scene.take().arguments == '{"v": "a"}'


def test_a_finished_call_in_rqs_started_registry_stays_finished(store: ClockedStore) -> None:
    """O2-02: registry clean-up took a finished job for abandoned and ran it again."""
    scene = Scene(store, audited=False)
    run = scene.start()
    scene.settle(run, 1)
    wip = scene.space.rq_registry("wip", "default")
    store.redis.zadd(wip, {f"{run.idempotency_key}:{run.token}": 1})
    for step in recovery.steps(scene.space, ["default"], "sweeper", grace_ms=0):
        scene.run(step)
    assert scene.state(run.call) is State.SUCCEEDED
    assert scene.claim(run.idempotency_key) == NotRun("settled", "succeeded")


def test_a_killed_workers_calls_are_at_rest_or_queued_within_a_lease(scene: Scene) -> None:
    """O2-03: the job was lost without a trace, or marked as running until its full time limit of 600 s."""
    long = spec("pay", timeout_ms=600_000)
    mutating, read = scene.start("a", of=long), scene.start("b", of=READ)
    scene.store.advance(LEASE_MS)
    scene.reclaim()
    assert scene.states([mutating.call, read.call]) == [State.UNKNOWN, State.QUEUED]
    assert scene.stats().balanced


def test_two_sweepers_that_act_on_the_same_call_queue_it_once(scene: Scene) -> None:
    """O2-04: a paused scheduler woke up and did what its successor had done. Here no sweeper owns anything."""
    run = scene.start(of=READ)
    scene.retry_later(run, delay_ms=1_000)
    scene.store.advance(1_000)
    for _ in range(2):
        scene.tick()
    assert len(scene.queued_jobs()) == 1


def test_a_worker_that_lost_its_lease_is_no_reason_to_run_a_mutating_call_again(scene: Scene) -> None:
    """O2-05, the store's part: a busy process starves its renewal and another takes the job."""
    late = scene.start()
    scene.lose(late)
    assert scene.claim(late.idempotency_key, worker="worker-b") == NotRun("unknown")
    assert scene.settle(late, "done").verdict == "settled"


def test_what_may_follow_a_dead_run_is_decided_by_the_tools_kind_and_no_timer(scene: Scene) -> None:
    """O2-06: expiry of an in-progress record allowed a withdrawal to be sent again."""
    run = scene.start()
    assert isinstance(scene.claim(run.idempotency_key), NotRun)
    scene.store.advance(LEASE_MS)
    scene.reclaim()
    for _ in range(3):
        scene.store.advance(100 * recovery.DAY_MS)
        scene.tick()
        for state in SETTLED:
            scene.run(recovery.forget(scene.space, state, Retention()))
        assert scene.claim(run.idempotency_key) == NotRun("unknown")
    assert scene.resolve(run.call) == "resolved"


def test_anyone_who_knows_call_and_fence_may_renew_and_a_renewal_without_record_is_lost(scene: Scene) -> None:
    """O2-07: a lock kept its token per thread; extending by zero deleted it and reported success."""
    run = scene.start()
    assert scene.run(execution.renew(scene.space, [run], lease_ms=LEASE_MS)) == ("kept",)
    assert scene.run(execution.renew(scene.space, [replace(run, call="0" * 32)], lease_ms=LEASE_MS)) == ("lost",)


def test_a_cleaner_touches_no_lease_that_is_alive_whatever_rq_says(scene: Scene) -> None:
    """O2-08: a cleaner deleted locks of jobs that were still running."""
    run = scene.start()
    scene.store.redis.delete(scene.space.rq_registry("wip", "default"), scene.space.rq_job(run.idempotency_key))
    assert scene.store.run(recovery.reclaim(scene.space, "cleaner")).counts["unknown"] == 0
    assert scene.settle(run, 1).verdict == "settled"


def test_a_record_that_vanished_under_a_running_call_is_noticed_at_its_end(store: ClockedStore) -> None:
    """O2-09 and O8-03: after a failover lock and record are gone. With a live process the fence tells."""
    scene = Scene(store, audited=False)
    run = scene.start()
    for key in store.redis.scan_iter(f"{scene.space.root}*"):
        if ":test:" not in key:
            store.redis.delete(key)
    assert scene.run(execution.renew(scene.space, [run], lease_ms=LEASE_MS)) == ("lost",)
    assert scene.settle(run, 1) == execution.SettleAnswer("gone")
    call = scene.submit()
    assert scene.claim(run.idempotency_key, seen=run.fence) == NotRun("held", "store_went_back")
    assert scene.state(call) is State.HELD


def test_the_rightful_owner_whose_reply_was_lost_is_told_that_it_is_the_owner(scene: Scene) -> None:
    """O2-10: a set-if-absent took effect, its reply was lost, and the owner heard "already there"."""
    scene.submit()
    job = scene.pop() or ""
    first = scene.claim(job, token="mine")
    assert scene.claim(job, token="mine") == first


def test_a_result_that_comes_after_redis_was_away_is_stored_late(own_server: RealServer) -> None:
    """O2-11, the store's part: Redis was away when the job ended, and its result was lost or null."""
    scene = Scene(ClockedStore.real(own_server.url, "away"))
    run = scene.start()
    own_server.restart()
    assert scene.lose(run) is State.UNKNOWN
    assert scene.settle(run, {"invoice": 7}).state is State.SUCCEEDED
    scene.store.close()


def test_arguments_and_results_go_before_the_markers_do(scene: Scene) -> None:
    """O8-04: failed jobs kept arguments for a year, and memory grew without limit."""
    runs = [scene.start(f"call-{at}", {"body": "x" * 5_000}) for at in range(5)]
    for run in runs:
        scene.fail(run)
    scene.store.advance(1_000)
    scene.run(recovery.forget(scene.space, State.FAILED, Retention(1_000, 2_000)))
    sizes = [sum(map(len, scene.record(run.call).fields.values.values())) for run in runs]
    assert max(sizes) < 1_000
    scene.store.advance(1_000)
    scene.run(recovery.forget(scene.space, State.FAILED, Retention(1_000, 2_000)))
    root = scene.space.root
    left = {key.removeprefix(root) for key in scene.store.redis.scan_iter(f"{root}*")}
    assert not {key for key in left if key.startswith(("call:", "history:", "evidence:", "turn:", "in:", "tombs:"))}


def test_a_call_that_kills_its_worker_is_handed_out_a_bounded_number_of_times(scene: Scene) -> None:
    """O8-06: only handled errors counted as attempts."""
    poison, mutating = scene.start("a", of=READ), scene.start("b")
    assert scene.lose(mutating) is State.UNKNOWN
    attempts = 1
    while scene.state(poison.call) is not State.FAILED:
        poison = scene.take()
        attempts += 1
        scene.lose(poison)
    assert attempts == READ.max_attempts


def test_no_script_takes_a_time_of_the_workers_clock(scene: Scene) -> None:
    """O8-07: leases were judged by each machine's own clock. Here workers send lengths of time, never points."""
    run = scene.start()
    sent = [
        execution.renew(scene.space, [run], lease_ms=LEASE_MS),
        recovery.reclaim(scene.space, "sweeper"),
        recovery.tick(scene.space),
        execution.settle(scene.space, run, execution.Ending(State.SUCCEEDED, "1")),
    ]
    numbers = [arg for invocation in sent for arg in invocation.args if isinstance(arg, int)]
    assert max(numbers) < 10 * LEASE_MS
    assert load("claim").text.count("'TIME'") == 1


def test_a_backlog_past_its_deadline_is_answered_and_not_run(scene: Scene) -> None:
    """O8-09: after a restart a queue delivered its whole backlog; a call without a deadline has a default one."""
    calls = [scene.submit(f"call-{at}") for at in range(20)]
    scene.store.advance(spec().deadline_ms)
    scene.tick()
    assert set(scene.states(calls)) == {State.EXPIRED}
    assert scene.stats().fence == 0
