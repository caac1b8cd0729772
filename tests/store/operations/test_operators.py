"""What people may say: once per request, about what they saw, and of two one wins."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.store.scene import BROKEN, Scene, spec
from toolonce.store.model.states import State
from toolonce.store.operations import operators, runs
from toolonce.store.operations.operation import Invocation
from toolonce.store.operations.operators import Actor, Decision, Expected
from toolonce.store.operations.recovery import Retention, forget

READ = spec("look", "read")


def test_an_approval_is_bound_to_the_arguments_that_were_shown(scene: Scene) -> None:
    call = scene.submit("a", {"cents": 1}, held="approval")
    shown = f"{call}-{'0' * 32}"
    assert scene.run(operators.approve(scene.space, call, shown, scene.word())).verdict == "mismatch"
    assert scene.state(call) is State.HELD


def test_of_two_decisions_the_first_wins_and_the_second_hears_of_it(scene: Scene) -> None:
    call = scene.submit(held="approval")
    ikey = scene.record(call).idempotency_key
    assert scene.approve(call) == "approved"
    done = scene.run(operators.deny(scene.space, call, ikey, scene.word(actor="bob")))
    assert (done.verdict, done.detail, done.more) == ("decided", "queued", "alice")


@pytest.mark.parametrize(
    ("reason", "told"), [("not today", "a person denied it: not today"), ("", "a person denied it")]
)
def test_who_was_denied_is_told_the_reason(scene: Scene, reason: str, told: str) -> None:
    call = scene.submit(held="approval")
    ikey = scene.record(call).idempotency_key
    scene.run(operators.deny(scene.space, call, ikey, scene.word(reason)))
    failure = scene.record(call).failure
    assert failure
    assert failure.message == f"not run: {told}"


def test_an_approval_comes_too_late_after_its_lifetime_even_before_a_sweep(scene: Scene) -> None:
    call = scene.submit(held="approval")
    scene.store.advance(spec().approval_ms)
    assert scene.approve(call) == "late"
    assert scene.state(call) is State.HELD
    scene.tick()
    assert scene.state(call) is State.EXPIRED
    assert scene.approve(call) == "late"
    assert scene.record(call).history[-1]["op"] == "late_approve"


def test_what_is_not_held_for_approval_cannot_be_approved(scene: Scene) -> None:
    call = scene.submit(held="no_worker")
    assert scene.approve(call) == "changed"
    assert scene.state(call) is State.HELD


def test_the_queue_deadline_starts_when_a_person_lets_the_call_in(scene: Scene) -> None:
    call = scene.submit(held="approval")
    scene.store.advance(spec().deadline_ms + 1)
    scene.approve(call)
    assert scene.take().deadline_at == scene.store.now + spec().deadline_ms


def test_a_hook_may_hold_a_claimed_call_for_approval_and_the_next_run_knows_of_it(scene: Scene) -> None:
    run = scene.start()
    assert not run.approved
    invocation = runs.release(scene.space, run, held="approval", approval_ms=1_000)
    assert [scene.run(invocation) for _ in range(2)] == ["held", "held"]
    scene.approve(run.call)
    again = scene.take()
    assert (again.approved, again.attempt) == (True, 1)


def test_an_approval_asked_for_by_a_hook_has_a_lifetime_too(scene: Scene) -> None:
    run = scene.start()
    scene.run(runs.release(scene.space, run, held="approval", approval_ms=1_000))
    scene.store.advance(1_000)
    assert scene.approve(run.call) == "late"
    assert scene.tick()["approvals_expired"] == 1


def test_an_operators_retry_gives_attempts_and_deadline_anew(scene: Scene) -> None:
    last = spec("look", "read", max_attempts=1)
    run = scene.start(of=last)
    assert scene.lose(run) is State.FAILED
    scene.store.advance(2 * last.deadline_ms)
    assert scene.retry(run.call) == "queued"
    again = scene.take()
    assert (again.attempt, again.attempt_limit) == (2, 2)
    assert again.deadline_at == scene.store.now + last.deadline_ms


def test_two_operators_who_saw_the_same_call_cause_one_run(scene: Scene) -> None:
    run = scene.start()
    scene.lose(run)
    seen = scene.seen(run.call)
    verdicts = [scene.run(operators.retry(scene.space, seen, scene.word(actor=who))).verdict for who in ("al", "bo")]
    assert verdicts == ["queued", "changed"]
    assert len(scene.queued_jobs()) == 1


def words(scene: Scene, call: str, seen: Expected) -> dict[str, Callable[[Actor], Invocation[Decision]]]:
    ikey = scene.record(call).idempotency_key
    return {
        "approve": lambda word: operators.approve(scene.space, call, ikey, word),
        "deny": lambda word: operators.deny(scene.space, call, ikey, word),
        "cancel": lambda word: operators.cancel(scene.space, seen, word),
        "resolve": lambda word: operators.resolve(scene.space, seen, "1", word),
        "retry": lambda word: operators.retry(scene.space, seen, word),
    }


@pytest.mark.parametrize("said", ["approve", "deny", "cancel", "resolve", "retry"])
def test_a_word_said_twice_under_one_request_is_answered_the_same_and_done_once(scene: Scene, said: str) -> None:
    if said in ("resolve", "retry"):
        call = scene.start().call
        scene.store.advance(10_001)
        scene.reclaim()
    else:
        call = scene.submit(held="approval")
    word = scene.word(request="the-request")
    invocation = words(scene, call, scene.seen(call))[said](word)
    first = scene.run(invocation)
    events = scene.record(call).history
    assert scene.run(invocation) == first
    assert not first.refused
    assert scene.record(call).history == events


def test_a_request_id_counts_for_one_operation_on_one_call_only(scene: Scene) -> None:
    first, second = scene.submit("a", held="approval"), scene.submit("b", held="approval")
    word = scene.word(request="reused")
    ikeys = [scene.record(call).idempotency_key for call in (first, second)]
    assert scene.run(operators.approve(scene.space, first, ikeys[0], word)).verdict == "approved"
    assert scene.run(operators.deny(scene.space, second, ikeys[1], word)).verdict == "denied"
    assert scene.run(operators.cancel(scene.space, Expected(first), word)).verdict == "cancelled"


def test_a_word_without_a_request_id_gets_one_so_that_a_lost_reply_changes_nothing(scene: Scene) -> None:
    call = scene.submit()
    invocation = operators.cancel(scene.space, scene.seen(call), Actor("alice"))
    assert scene.run(invocation) == scene.run(invocation) == Decision("cancelled")


def test_cancel_stops_what_waits_and_asks_what_runs(scene: Scene) -> None:
    queued, held, running = scene.submit("a"), scene.submit("b", held="approval"), scene.start("c")
    assert running.call == queued
    running = scene.take()
    assert [scene.cancel(call) for call in (held, running.call)] == ["cancelled", "requested"]
    assert scene.state(running.call) is State.RUNNING
    assert scene.claim(running.idempotency_key, token=running.token).cancel_requested  # type: ignore[union-attr]
    scene.settle(running, "it was done by then")
    assert scene.state(running.call) is State.SUCCEEDED


def test_cancel_of_what_is_at_rest_says_what_it_is(scene: Scene) -> None:
    run = scene.start()
    scene.settle(run, 1)
    done = scene.run(operators.cancel(scene.space, Expected(run.call), scene.word()))
    assert (done.verdict, done.detail) == ("changed", "succeeded")
    assert scene.cancel("0" * 32) == "gone"


def test_cancel_never_says_not_run_of_a_call_that_was_attempted(scene: Scene) -> None:
    run = scene.start(of=spec("put", "idempotent"))
    scene.retry_later(run)
    assert scene.cancel(run.call) == "cancelled"
    failure = scene.record(run.call).failure
    assert failure is not None
    assert "not run" not in failure.message
    assert failure.details == {"attempts": 1, "reason": "because", "last_error": BROKEN.message}


def test_resolve_settles_with_the_value_or_the_failure_that_was_given(scene: Scene) -> None:
    happened, did_not = scene.start("a"), scene.start("b")
    scene.lose(happened)
    assert scene.resolve(happened.call, '{"invoice": 7}') == "resolved"
    assert scene.resolve(did_not.call, BROKEN) == "resolved"
    first, second = scene.lookup(scene.call("a"), scene.call("b"))
    assert first is not None
    assert second is not None
    assert (first.state, first.value) == (State.SUCCEEDED, {"invoice": 7})
    assert (second.state, second.failure) == (State.FAILED, BROKEN)


def test_a_resolved_value_may_stand_between_blanks(scene: Scene) -> None:
    run = scene.start()
    scene.lose(run)
    scene.resolve(run.call, '\n {"invoice": 7}\n')
    (outcome,) = scene.lookup(scene.call())
    assert outcome is not None
    assert outcome.value == {"invoice": 7}


def test_a_retried_call_is_pending_again_and_shows_nothing_of_its_old_end(scene: Scene) -> None:
    run = scene.start()
    scene.fail(run)
    scene.retry(run.call)
    (outcome,) = scene.lookup(scene.call())
    assert outcome is not None
    assert (outcome.pending, outcome.failure, outcome.replayed) == (True, None, False)


def test_what_is_forgotten_cannot_be_retried(scene: Scene) -> None:
    run = scene.start()
    scene.fail(run)
    seen = scene.seen(run.call)
    scene.store.advance(10)
    scene.run(forget(scene.space, State.FAILED, Retention(body_ms=10)))
    assert scene.run(operators.retry(scene.space, seen, scene.word())).verdict == "gone"
    assert scene.state(run.call) is State.FAILED


def test_every_word_is_in_the_history_with_who_and_why(scene: Scene) -> None:
    run = scene.start()
    scene.lose(run)
    scene.run(operators.resolve(scene.space, scene.seen(run.call), "1", scene.word("saw the invoice", actor="bob")))
    event = scene.record(run.call).history[-1]
    assert (event["op"], event["actor"], event["reason"], event["fence"]) == (
        "resolve", "bob", "saw the invoice", run.fence,
    )  # fmt: skip
