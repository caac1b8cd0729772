"""What the sweep mends: lost pointers, deadlines, lifetimes, steps back of the store; and what retention leaves."""

from __future__ import annotations

import pytest

from tests.support.store.scene import GRACE_MS, LEASE_MS, Scene, spec
from toolonce.store.model.states import State
from toolonce.store.operations import operators, recovery
from toolonce.store.operations.recovery import Retention
from toolonce.store.operations.runs import NotRun, Run
from toolonce.store.operations.tools import publish

READ = spec("look", "read", max_attempts=2)


def repush_until_seen(scene: Scene) -> int:
    """Two looks, a grace apart."""
    scene.repush()
    scene.store.advance(GRACE_MS)
    return scene.repush()["repushed"]


def test_a_pointer_popped_by_a_worker_that_died_before_its_claim_comes_back(scene: Scene) -> None:
    call = scene.submit()
    job = scene.pop()
    assert repush_until_seen(scene) == 1
    assert scene.queued_jobs() == [job]
    assert scene.store.redis.llen(scene.space.intermediate_key("default")) == 0
    assert scene.take().call == call


def test_a_deleted_queue_is_rebuilt_in_order(scene: Scene) -> None:
    calls = [scene.submit(name) for name in "abc"]
    scene.store.redis.delete(scene.space.queue_key("default"))
    assert repush_until_seen(scene) == 3
    assert [scene.take().call for _ in calls] == calls


def test_a_pointer_in_flight_is_not_pushed_again_before_the_grace_is_over(scene: Scene) -> None:
    scene.submit()
    scene.pop()
    scene.repush()
    scene.store.advance(GRACE_MS - 1)
    assert scene.repush()["repushed"] == 0


def test_a_long_queue_is_not_taken_for_lost(scene: Scene) -> None:
    for name in "abcdef":
        scene.submit(name)
    scene.take()
    for _ in range(4):
        assert repush_until_seen(scene) == 0
    assert len(scene.queued_jobs()) == 5


def test_a_lost_pointer_is_found_while_others_still_wait_behind_it(scene: Scene) -> None:
    lost = scene.submit("a")
    scene.pop()
    for name in "bc":
        scene.submit(name)
    assert repush_until_seen(scene) == 1
    assert [scene.take().call_id for _ in range(3)] == ["b", "c", "a"]
    assert scene.state(lost) is State.RUNNING


def test_a_lost_pointer_of_a_woken_call_is_found_and_marks_no_border(scene: Scene) -> None:
    scene.run(publish(scene.space, [spec("pay", concurrency=1)]))
    running = scene.start("a")
    woken, other = scene.submit("b"), scene.submit("c", of=READ)
    scene.claim(scene.pop() or "")
    scene.settle(running)
    assert scene.pop() == scene.record(woken).idempotency_key
    assert repush_until_seen(scene) == 1
    assert {scene.take().call, scene.take().call} == {woken, other}


def test_a_woken_call_at_the_head_hides_no_lost_pointer(scene: Scene) -> None:
    scene.run(publish(scene.space, [spec("pay", concurrency=1)]))
    running = scene.start("a")
    scene.submit("b")
    scene.claim(scene.pop() or "")
    lost = scene.submit("c", of=READ)
    scene.pop()
    scene.settle(running)
    scene.submit("d", of=READ)
    assert len(scene.queued_jobs()) == 2
    repush_until_seen(scene)
    assert scene.record(lost).idempotency_key in scene.queued_jobs()


def test_lost_pointers_come_back_in_bounded_steps_without_a_grace_between_them(scene: Scene) -> None:
    for number in range(25):
        scene.submit(f"call-{number}")
    scene.store.redis.delete(scene.space.queue_key("default"))
    scene.repush()
    scene.store.advance(GRACE_MS)
    steps = [scene.run(recovery.repush(scene.space, "default", grace_ms=GRACE_MS, most=10)) for _ in range(3)]
    assert [(step.counts["repushed"], step.more) for step in steps] == [(10, True), (10, True), (5, False)]


def test_a_doubled_pointer_runs_nothing_twice(scene: Scene) -> None:
    call = scene.submit()
    job = scene.queued_jobs()[0]
    scene.store.redis.rpush(scene.space.queue_key("default"), job)
    run = scene.take()
    assert isinstance(scene.claim(scene.pop() or ""), NotRun)
    scene.settle(run)
    assert scene.claim(job) == NotRun("settled", "succeeded")
    assert scene.record(call).fields.attempt == 1


def test_a_lease_that_is_alive_is_never_touched_and_an_expired_one_always(scene: Scene) -> None:
    old = scene.start("a", of=READ)
    scene.store.advance(LEASE_MS // 2)
    young = scene.start("b", of=READ)
    scene.store.advance(LEASE_MS // 2)
    assert scene.reclaim() == {"requeued": 1, "failed": 0, "unknown": 0, "cancelled": 0}
    assert scene.states([old.call, young.call]) == [State.QUEUED, State.RUNNING]


def test_a_lost_call_that_someone_wanted_stopped_is_not_queued_again(scene: Scene) -> None:
    run = scene.start(of=READ)
    scene.cancel(run.call)
    assert scene.lose(run) is State.CANCELLED


def test_expired_leases_are_ended_in_bounded_steps(scene: Scene) -> None:
    for number in range(5):
        scene.start(f"call-{number}")
    scene.store.advance(LEASE_MS)
    steps = [scene.run(recovery.reclaim(scene.space, "sweeper", most=2)) for _ in range(3)]
    assert [(step.counts["unknown"], step.more) for step in steps] == [(2, True), (2, True), (1, False)]


def test_a_read_whose_deadline_passed_while_it_ran_is_not_run_again(scene: Scene) -> None:
    run = scene.start(of=spec("look", "read", deadline_ms=LEASE_MS))
    assert scene.lose(run) is State.FAILED
    failure = scene.record(run.call).failure
    assert failure is not None
    assert failure.code == "deadline_exceeded"


def test_a_backlog_past_its_deadline_is_expired_and_not_run(scene: Scene) -> None:
    calls = [scene.submit(name) for name in "abc"]
    scene.store.advance(spec().deadline_ms)
    with pytest.raises(AssertionError, match="gives a run"):
        scene.take()
    assert set(scene.states(calls)) == {State.EXPIRED}
    failure = scene.record(calls[0]).failure
    assert failure is not None
    assert failure.message.startswith("not run")


def test_a_call_that_expires_between_two_attempts_does_not_say_that_it_never_ran(scene: Scene) -> None:
    run = scene.start(of=READ)
    scene.retry_later(run, delay_ms=READ.deadline_ms)
    scene.store.advance(READ.deadline_ms)
    assert scene.tick()["expired"] == 1
    failure = scene.record(run.call).failure
    assert failure is not None
    assert (failure.details["attempts"], failure.details["last_error"]) == (1, "it broke")
    assert "not run" not in failure.message


def test_a_call_that_no_worker_ever_serves_comes_to_rest(scene: Scene) -> None:
    call = scene.submit(held="no_worker")
    run = scene.start("b")
    scene.release(run, held="no_worker")
    scene.store.advance(spec().deadline_ms)
    assert scene.tick()["expired"] == 2
    assert scene.states([call, run.call]) == [State.EXPIRED, State.EXPIRED]


def test_a_store_that_knows_less_than_a_process_holds_mutating_calls(scene: Scene) -> None:
    mutating, read = scene.submit("a"), scene.submit("b", of=READ)
    assert scene.claim(scene.pop() or "", seen=7) == NotRun("held", "store_went_back")
    run = scene.take()
    assert (run.call, run.fence) == (read, 8)
    flags = scene.stats().flags
    assert (flags["went_back_from"], flags["went_back_to"]) == ("7", "0")
    assert scene.state(mutating) is State.HELD


def test_after_a_step_back_mutating_calls_wait_for_the_operators_word(scene: Scene) -> None:
    scene.submit("x", of=READ)
    scene.claim(scene.pop() or "", seen=7)
    calls = [scene.submit(name) for name in "abc"]
    for _ in calls:
        assert scene.claim(scene.pop() or "") == NotRun("held", "store_went_back")
    answers = [scene.run(operators.accept_loss(scene.space, scene.word(), most=2)) for _ in range(2)]
    assert answers == [(True, 2, 1), (False, 1, 0)]
    assert "went_back" not in scene.stats().flags
    assert {scene.take().call for _ in calls} == set(calls)


def test_calls_let_in_after_a_step_back_keep_their_order(scene: Scene) -> None:
    first = scene.submit("a", lanes=("lane",))
    second = scene.submit("b", lanes=("lane",))
    scene.claim(scene.pop() or "", seen=7)
    scene.run(operators.accept_loss(scene.space, scene.word()))
    assert scene.states([first, second]) == [State.QUEUED, State.HELD]


def forgotten(scene: Scene, state: State, keep: Retention) -> dict[str, int]:
    return scene.run(recovery.forget(scene.space, state, keep)).counts


def test_the_body_goes_first_and_the_tombstone_still_stops_a_second_run(scene: Scene) -> None:
    run = scene.start("a", {"big": "x" * 1000})
    scene.settle(run, "y" * 1000)
    scene.store.advance(100)
    assert forgotten(scene, State.SUCCEEDED, Retention(100, 1_000))["bodies_forgotten"] == 1
    stored = scene.record(run.call).fields.values
    assert not stored.keys() & {"args", "result"}
    (outcome,) = scene.admit(scene.call("a", {"big": "x" * 1000}))
    assert outcome.marks["forgotten_at"] - outcome.marks["settled_at"] == 100
    told = {**outcome.marks, "forgotten": True, "size": 1_002}
    assert (outcome.state, outcome.replayed, outcome.marks) == (State.SUCCEEDED, True, told)
    assert scene.queued_jobs() == []
    assert scene.claim(run.idempotency_key) == NotRun("settled", "succeeded")


def test_after_its_tombstone_nothing_of_a_call_is_left(scene: Scene) -> None:
    run = scene.start(of=READ)
    scene.lose(run)
    scene.settle(scene.take(), "done")
    scene.store.advance(100)
    forgotten(scene, State.SUCCEEDED, Retention(100, 1_000))
    scene.settle(run, "late evidence after the body went")
    scene.store.advance(900)
    assert forgotten(scene, State.SUCCEEDED, Retention(100, 1_000))["tombstones_removed"] == 1
    left = list(scene.store.redis.scan_iter(f"{scene.space.root}*{run.call}*"))
    assert left == []
    assert scene.stats().balanced


def test_open_calls_are_never_forgotten(scene: Scene) -> None:
    for state in (State.HELD, State.QUEUED, State.RUNNING, State.UNKNOWN):
        with pytest.raises(ValueError, match="never forgotten"):
            recovery.forget(scene.space, state, Retention())


def test_the_counters_keep_counting_what_was_forgotten(scene: Scene) -> None:
    scene.settle(scene.start())
    scene.store.advance(1_000)
    for _ in range(2):
        forgotten(scene, State.SUCCEEDED, Retention(100, 1_000))
    assert scene.stats().counts["settled"] == 1


def test_each_unknown_call_is_handed_out_to_reconcile_by_one_sweeper_at_a_time(scene: Scene) -> None:
    run = scene.start()
    scene.lose(run)
    asking = recovery.reconcile(scene.space, ["other", "pay"], lease_ms=1_000, worker="one")
    found = scene.run(asking)
    assert found is not None
    assert (found.run.call, found.run.fence, found.asked) == (run.call, run.fence, 0)
    assert scene.run(asking) is None
    scene.store.advance(1_000)
    again = scene.run(asking)
    assert again is not None
    assert again.asked == 1


def test_a_reconcile_that_could_not_tell_is_asked_again_later_and_settled_calls_never(scene: Scene) -> None:
    run = scene.start()
    scene.lose(run)
    assert scene.run(recovery.reconcile_later(scene.space, run.call, wait_ms=5_000, heard="no answer"))
    asking = recovery.reconcile(scene.space, ["pay"], lease_ms=1_000, worker="one")
    scene.store.advance(4_999)
    assert scene.run(asking) is None
    scene.resolve(run.call)
    scene.store.advance(10_000)
    assert scene.run(asking) is None
    assert not scene.run(recovery.reconcile_later(scene.space, run.call, wait_ms=1, heard="late"))


def test_one_round_of_the_sweep_mends_all_kinds_of_damage(scene: Scene) -> None:
    scene.lose(scene.start("a"))
    lost = scene.submit("b")
    scene.pop()
    later = scene.start("c")
    assert isinstance(later, Run)
    scene.retry_later(later, delay_ms=100)
    for _ in range(2):
        for step in recovery.steps(scene.space, ["default"], "sweeper", grace_ms=GRACE_MS):
            scene.run(step)
        scene.store.advance(GRACE_MS)
    assert {scene.take().call, scene.take().call} == {lost, later.call}
