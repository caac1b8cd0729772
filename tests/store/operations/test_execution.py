"""One attempt under its fence: claim, renew, begin, settle, giving back; late words and words said twice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.store.scene import BROKEN, LEASE_MS, Scene, spec
from toolonce.store.model.states import State
from toolonce.store.operations import operators, runs
from toolonce.store.operations.runs import NotRun, Run

READ = spec("look", "read", max_attempts=3)
BEGINS = spec("pay", begins=True)


def test_a_claim_gives_all_that_a_run_needs(scene: Scene) -> None:
    run = scene.start("a", {"cents": 2**70}, of=READ, tenant="acme")
    assert (run.tool, run.arguments, run.tenant, run.scope, run.turn_id, run.call_id) == (
        "look", '{"cents": 1180591620717411303424}', "acme", "scope", "turn", "a",
    )  # fmt: skip
    assert (run.fence, run.attempt, run.attempt_limit, run.effect) == (1, 1, 3, READ.effect)


def test_every_claim_of_the_namespace_gets_a_higher_fence(scene: Scene) -> None:
    first, second = scene.start("a"), scene.start("b")
    scene.retry_later(first, delay_ms=0)
    again = scene.take()
    assert first.fence < second.fence < again.fence


def test_the_same_delivery_gets_its_own_claim_again(scene: Scene) -> None:
    scene.submit()
    job = scene.pop() or ""
    first = scene.claim(job, token="delivery")
    assert scene.claim(job, token="delivery") == first
    assert scene.stats().fence == 1


def test_another_delivery_of_a_running_call_is_told_that_it_is_busy(scene: Scene) -> None:
    run = scene.start()
    scene.store.advance(1_000)
    assert scene.claim(run.idempotency_key) == NotRun("busy", str(LEASE_MS - 1_000))


def test_a_pointer_with_other_arguments_than_the_record_runs_nothing(scene: Scene) -> None:
    call = scene.submit()
    assert scene.claim(f"{call}-{'0' * 32}") == NotRun("gone")
    assert scene.claim(f"{'0' * 32}-{'0' * 32}") == NotRun("gone")
    assert scene.state(call) is State.QUEUED


def test_a_lease_that_is_not_positive_is_refused(scene: Scene) -> None:
    scene.submit()
    for lease in (0, -1):
        with pytest.raises(ValueError, match="protects nothing"):
            scene.claim(scene.queued_jobs()[0], lease_ms=lease)


def test_a_renewed_lease_is_never_reclaimed(scene: Scene) -> None:
    run = scene.start()
    for _ in range(5):
        scene.store.advance(LEASE_MS - 1)
        scene.reclaim()
        assert scene.run(runs.renew(scene.space, [run], lease_ms=LEASE_MS)) == ("kept",)
    assert scene.state(run.call) is State.RUNNING


def test_a_lease_may_be_renewed_past_its_end_while_nobody_reclaimed_it(scene: Scene) -> None:
    run = scene.start()
    scene.store.advance(3 * LEASE_MS)
    assert scene.run(runs.renew(scene.space, [run], lease_ms=LEASE_MS)) == ("kept",)
    scene.reclaim()
    assert scene.state(run.call) is State.RUNNING


def test_one_renewal_answers_for_each_run_of_a_process(scene: Scene) -> None:
    kept, stopped, gone = (scene.start(name, of=READ) for name in "abc")
    scene.cancel(stopped.call)
    scene.settle(gone)
    assert scene.run(runs.renew(scene.space, [kept, stopped, gone], lease_ms=LEASE_MS)) == (
        "kept",
        "cancel",
        "lost",
    )


def test_a_late_worker_cannot_renew_begin_or_give_back_what_its_successor_runs(scene: Scene) -> None:
    late = scene.start(of=READ)
    scene.lose(late)
    scene.take()
    assert scene.run(runs.renew(scene.space, [late], lease_ms=LEASE_MS)) == ("lost",)
    assert scene.run(runs.begin(scene.space, late)) == "lost"
    assert scene.run(runs.progress(scene.space, late, 0.5, "half")) is False
    assert scene.release(late) == "lost"
    assert scene.retry_later(late) == "lost"
    assert scene.run(runs.interrupt(scene.space, late, reason="drain")) == "lost"
    assert scene.state(late.call) is State.RUNNING


def test_a_late_worker_cannot_overwrite_its_successor(scene: Scene) -> None:
    late = scene.start(of=READ)
    scene.lose(late)
    successor = scene.take()
    assert scene.settle(late, "late").verdict == "late"
    scene.settle(successor, "mine")
    assert scene.settle(late, "late").verdict == "late"
    stored = scene.record(late.call)
    assert stored.fields.result == '"mine"'
    assert [(item["fence"], item["result"]) for item in stored.evidence] == [(str(late.fence), '"late"')]


def test_a_late_outcome_after_an_operators_word_is_evidence_and_overwrites_nothing(scene: Scene) -> None:
    run = scene.start()
    scene.lose(run)
    scene.resolve(run.call, BROKEN)
    assert scene.settle(run, "it happened after all").verdict == "late"
    stored = scene.record(run.call)
    assert stored.state is State.FAILED
    assert stored.evidence[0]["result"] == '"it happened after all"'


def test_a_late_success_that_comes_before_an_operators_retry_ran_spares_the_second_run(scene: Scene) -> None:
    run = scene.start()
    scene.lose(run)
    scene.retry(run.call)
    assert scene.settle(run, "done").verdict == "settled"
    assert scene.claim(scene.pop() or "") == NotRun("settled", "succeeded")


def test_after_an_operators_retry_ran_the_old_fence_only_gives_evidence(scene: Scene) -> None:
    old = scene.start()
    scene.lose(old)
    scene.retry(old.call)
    scene.take()
    assert scene.settle(old, "done").verdict == "late"
    assert scene.state(old.call) is State.RUNNING


def test_begin_is_written_once_and_makes_a_lost_call_unknown(scene: Scene) -> None:
    run = scene.start(of=BEGINS)
    assert [scene.run(runs.begin(scene.space, run)) for _ in range(2)] == ["begun", "begun"]
    assert [event["op"] for event in scene.record(run.call).history].count("begin") == 1
    assert scene.lose(run) is State.UNKNOWN


def test_a_call_that_was_lost_before_begin_runs_again_and_its_old_worker_cannot_begin(scene: Scene) -> None:
    old = scene.start(of=BEGINS)
    assert scene.lose(old) is State.QUEUED
    assert scene.run(runs.begin(scene.space, old)) == "lost"
    new = scene.take()
    assert scene.run(runs.begin(scene.space, old)) == "lost"
    assert scene.run(runs.begin(scene.space, new)) == "begun"


def test_a_stop_that_was_asked_for_in_time_lets_nothing_begin(scene: Scene) -> None:
    run = scene.start(of=BEGINS)
    assert scene.cancel(run.call) == "requested"
    assert scene.run(runs.begin(scene.space, run)) == "cancel"
    assert not scene.record(run.call).fields.begun


def test_an_unentered_call_given_back_does_not_count_as_an_attempt(scene: Scene) -> None:
    for _ in range(READ.max_attempts + 1):
        run = scene.start(of=READ) if not scene.queued_jobs() else scene.take()
        assert run.attempt == 1
        assert scene.release(run) == "queued"


def test_attempts_count_at_claim_so_that_a_call_that_kills_its_worker_is_parked(scene: Scene) -> None:
    run = scene.start(of=READ)
    for attempt in range(1, READ.max_attempts):
        assert run.attempt == attempt
        assert scene.lose(run) is State.QUEUED
        run = scene.take()
    assert scene.lose(run) is State.FAILED
    failure = scene.record(run.call).failure
    assert failure is not None
    assert (failure.code, failure.details["attempt"]) == ("attempts_exhausted", READ.max_attempts)


def test_what_waits_to_run_again_is_not_available_before_its_time(scene: Scene) -> None:
    run = scene.start(of=READ)
    scene.retry_later(run, delay_ms=1_000)
    scene.store.advance(999)
    assert scene.tick()["available"] == 0
    assert scene.claim(run.idempotency_key) == NotRun("parked", "later")
    scene.store.advance(1)
    assert scene.tick()["available"] == 1
    assert scene.take().attempt == 2


@pytest.mark.parametrize("give_up", ["release", "retry_later", "interrupt"])
def test_giving_up_is_answered_the_same_when_it_comes_twice(scene: Scene, give_up: str) -> None:
    run = scene.start(of=READ)
    invocation = {
        "release": runs.release(scene.space, run),
        "retry_later": runs.retry_later(scene.space, run, delay_ms=0, failure=BROKEN),
        "interrupt": runs.interrupt(scene.space, run, reason="drain"),
    }[give_up]
    assert scene.run(invocation) == "queued"
    again = scene.take()
    assert scene.run(invocation) == "queued"
    assert scene.state(run.call) is State.RUNNING
    scene.settle(again, "done")
    assert scene.run(invocation) == "queued"


@pytest.mark.parametrize("value", [0, 0.0, False, "", [], {}, None])
def test_results_that_count_as_false_are_results(scene: Scene, value: Any) -> None:
    run = scene.start()
    scene.settle(run, value)
    (found,) = scene.lookup(scene.call())
    assert found is not None
    assert (found.settled, found.replayed, found.failure) == (True, True, None)
    assert (found.value, type(found.value)) == (value, type(value))


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED, State.REFUSED, State.UNKNOWN])
def test_settling_twice_counts_once(scene: Scene, state: State) -> None:
    run = scene.start()
    first, second = (scene.settle(run, "done", state=state) for _ in range(2))
    assert first == second
    assert (first.verdict, first.state) == ("settled", state)
    events = [event["op"] for event in scene.record(run.call).history]
    assert events == ["admit", "claim", "settle"]


def test_the_first_outcome_of_a_fence_stands(scene: Scene) -> None:
    run = scene.start()
    scene.settle(run, "first")
    assert scene.fail(run).verdict == "late"
    assert scene.fail(run).verdict == "late"
    stored = scene.record(run.call)
    assert (stored.state, stored.fields.result, len(stored.evidence)) == (State.SUCCEEDED, '"first"', 1)


def test_a_call_that_nobody_knows_cannot_be_settled(scene: Scene) -> None:
    run = scene.start()
    assert (
        scene.settle(Run(**{name: getattr(run, name) for name in Run.__slots__} | {"call": "0" * 32})).verdict == "gone"
    )


@pytest.mark.parametrize("effect", ["read", "idempotent", "mutating"])
def test_a_stop_asked_for_while_it_ran_ends_a_call_that_would_be_queued_again(scene: Scene, effect: str) -> None:
    run = scene.start(of=spec("tool", effect))
    scene.cancel(run.call)
    assert scene.retry_later(run, delay_ms=0) == "cancelled"
    stored = scene.record(run.call)
    assert stored.failure is not None
    assert (stored.failure.code, stored.failure.details["attempts"]) == ("cancelled", 1)
    assert "not run" not in stored.failure.message


def test_a_stop_asked_for_before_the_handler_was_entered_leaves_no_attempt(scene: Scene) -> None:
    run = scene.start()
    scene.cancel(run.call)
    assert scene.release(run) == "cancelled"
    failure = scene.record(run.call).failure
    assert failure is not None
    assert failure.message.startswith("not run")


def test_a_stop_does_not_turn_unknown_into_cancelled(scene: Scene) -> None:
    run = scene.start()
    scene.cancel(run.call)
    assert scene.lose(run) is State.UNKNOWN
    done = scene.run(operators.cancel(scene.space, scene.seen(run.call), scene.word()))
    assert (done.verdict, done.detail) == ("changed", "unknown")


def test_progress_is_seen_and_changes_no_state(scene: Scene) -> None:
    run = scene.start()
    assert scene.run(runs.progress(scene.space, run, 0.5, "half way"))
    stored = scene.record(run.call)
    assert (stored.state, stored.fields.progress, stored.fields.progress_message) == (
        State.RUNNING, 0.5, "half way",
    )  # fmt: skip


def test_history_tells_a_doubled_delivery_from_a_doubled_execution(scene: Scene) -> None:
    run = scene.start(of=READ)
    scene.claim(run.idempotency_key)
    assert [event["op"] for event in scene.record(run.call).history] == ["admit", "claim"]
    scene.lose(run)
    scene.take()
    claims = [event for event in scene.record(run.call).history if event["op"] == "claim"]
    assert [(event["fence"], event["attempt"]) for event in claims] == [(1, 1), (2, 2)]


def test_a_refusal_before_entry_counts_no_attempt_and_leaves_those_before_it(scene: Scene) -> None:
    """Whether anything was ever entered is told from the attempts: a refusal says "nothing ran" only without any."""
    first = scene.start("a")
    scene.settle(first, state=State.REFUSED)
    assert scene.record(first.call).fields.attempt == 0

    again = scene.start("b")
    scene.lose(again)
    scene.retry(again.call)
    scene.settle(scene.take(), state=State.REFUSED)
    assert scene.record(again.call).fields.attempt == 1
