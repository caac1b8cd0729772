"""Calls that are held since the store went back: they may have run in moments that it has lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.store.scene import Scene, spec
from toolonce.store.model.outcomes import Failure, Outcome
from toolonce.store.model.states import Operation, State
from toolonce.store.operations import operators
from toolonce.store.operations.runs import Ending, NotRun, release, settle
from toolonce.stream.replies.answers import for_model
from toolonce.stream.replies.translations import MessageCode
from toolonce.stream.replies.user_text import message_code

PAY = spec("pay")
LOST = Failure("tool_error", "not in the books")


def held_back(scene: Scene, call_id: str = "a") -> str:
    call = scene.submit(call_id, of=PAY)
    assert scene.claim(scene.pop() or "", seen=1_000) == NotRun("held", "store_went_back")
    return call


def accept(scene: Scene) -> None:
    scene.run(operators.accept_loss(scene.space, scene.word()))


def outcome(scene: Scene, call_id: str = "a") -> Outcome:
    (found,) = scene.lookup(scene.call(call_id, of=PAY))
    assert found
    return found


def assert_left_open(scene: Scene, call_id: str = "a") -> None:
    """Neither the model, nor a user, nor the stored words say that nothing ran."""
    found = outcome(scene, call_id)
    told = for_model(found)
    assert "Nothing was executed" not in told
    assert "not run:" not in told
    assert "may have" in told
    assert "Do not call it again unless you are asked to" in told or found.pending
    assert message_code(found) is MessageCode.CALL_UNCONFIRMED


@pytest.mark.parametrize(("verdict", "state"), [('{"id": 7}', State.SUCCEEDED), (LOST, State.FAILED)])
def test_a_person_who_has_compared_says_what_became_of_a_held_call(
    real_scene: Scene, verdict: str | Failure, state: State
) -> None:
    """faults 7: it had run, or it never will; nothing is run, and the answer is stored like any other."""
    call = held_back(real_scene)

    assert real_scene.resolve(call, verdict) == "resolved"

    found = outcome(real_scene)
    assert (found.state, found.settled, found.may_have_run) == (state, True, False)
    assert found.value == ({"id": 7} if state is State.SUCCEEDED else None)
    accept(real_scene)
    assert real_scene.pop() is None
    assert real_scene.state(call) is state


@pytest.mark.parametrize("reason", ["approval", "no_worker", "duplicate", "order"])
def test_a_call_that_is_held_for_another_reason_is_not_resolved(real_scene: Scene, reason: str) -> None:
    if reason == "order":
        real_scene.submit("first", lanes=("lane",))
        call = real_scene.submit("a", lanes=("lane",))
    else:
        call = real_scene.submit("a", held=reason)
    assert real_scene.resolve(call) == "changed"
    assert real_scene.state(call) is State.HELD


def test_a_reconcile_says_nothing_about_a_held_call(real_scene: Scene) -> None:
    call = held_back(real_scene)
    word, seen = real_scene.word(), real_scene.seen(call)
    done = real_scene.run(operators.resolve(real_scene.space, seen, "1", word, operation=Operation.RECONCILE))
    assert (done.verdict, real_scene.state(call)) == ("changed", State.HELD)


def test_a_word_about_a_held_call_that_comes_twice_is_answered_once(real_scene: Scene) -> None:
    call = held_back(real_scene)
    word, seen = real_scene.word(), real_scene.seen(call)
    first, again = (real_scene.run(operators.resolve(real_scene.space, seen, "1", word)) for _ in range(2))
    assert first == again
    assert real_scene.resolve(call, LOST) == "changed"


def cancel(scene: Scene, call: str) -> None:
    assert scene.cancel(call) == "cancelled"


def let_it_expire(scene: Scene, call: str) -> None:
    accept(scene)
    scene.store.advance(PAY.deadline_ms + 1)
    scene.tick()
    assert scene.state(call) is State.EXPIRED


def cancel_once_it_is_free(scene: Scene, call: str) -> None:
    accept(scene)
    cancel(scene, call)


def refuse_by_a_hook(scene: Scene, call: str) -> None:
    accept(scene)
    run = scene.take()
    ending = Ending(State.REFUSED, failure=Failure("denied", "no"))
    assert scene.run(settle(scene.space, run, ending)).state is State.REFUSED


def deny_once_it_is_free(scene: Scene, call: str) -> None:
    accept(scene)
    scene.run(release(scene.space, scene.take(), held="approval", approval_ms=PAY.approval_ms))
    scene.store.advance(1)
    assert scene.deny(call) == "denied"


def let_its_approval_expire(scene: Scene, call: str) -> None:
    accept(scene)
    scene.run(release(scene.space, scene.take(), held="approval", approval_ms=PAY.approval_ms))
    scene.store.advance(PAY.approval_ms + 1)
    scene.tick()
    assert scene.state(call) is State.EXPIRED


ENDS: list[Callable[[Scene, str], None]] = [
    cancel, let_it_expire, cancel_once_it_is_free, refuse_by_a_hook, deny_once_it_is_free, let_its_approval_expire,
]  # fmt: skip


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_no_end_of_a_call_that_may_have_run_says_that_nothing_was_executed(
    real_scene: Scene, end: Callable[[Scene, str], None]
) -> None:
    """faults 7"""
    call = held_back(real_scene)
    assert_left_open(real_scene)
    end(real_scene, call)
    assert_left_open(real_scene)


def test_a_call_that_waits_while_the_flag_stands_and_is_cancelled_leaves_it_open(real_scene: Scene) -> None:
    """faults 7: no worker has looked at it yet."""
    held_back(real_scene)
    call = real_scene.submit("b", of=PAY)
    cancel(real_scene, call)
    assert_left_open(real_scene, "b")


@pytest.mark.parametrize("when", ["before", "while the flag stands"])
def test_a_follower_that_is_refused_after_a_step_back_leaves_it_open(real_scene: Scene, when: str) -> None:
    """faults 7: in the moments that were lost the first may have succeeded, and the second may have run."""
    first = real_scene.submit("first", of=PAY)
    if when == "before":
        real_scene.submit("a", of=PAY, predecessors=(first,))
    assert real_scene.claim(real_scene.pop() or "", seen=1_000) == NotRun("held", "store_went_back")
    if when != "before":
        real_scene.submit("a", of=PAY, predecessors=(first,))
    cancel(real_scene, first)
    assert outcome(real_scene).state is State.REFUSED
    assert_left_open(real_scene)


def test_a_call_admitted_after_the_loss_was_accepted_says_that_nothing_ran_when_it_is_cancelled(
    real_scene: Scene,
) -> None:
    held_back(real_scene)
    accept(real_scene)
    real_scene.store.advance(1)
    cancel(real_scene, real_scene.submit("b", of=PAY))
    assert "Nothing was executed" in for_model(outcome(real_scene, "b"))


def test_the_deadline_of_a_held_call_stands_still(real_scene: Scene) -> None:
    """faults 7: comparing takes a person's time, not the call's."""
    real_scene.submit("a", of=PAY)
    real_scene.store.advance(PAY.deadline_ms - 1_000)
    assert real_scene.claim(real_scene.pop() or "", seen=1_000) == NotRun("held", "store_went_back")
    real_scene.store.advance(10 * PAY.deadline_ms)
    real_scene.tick()
    assert outcome(real_scene).state is State.HELD

    accept(real_scene)
    real_scene.store.advance(900)
    real_scene.tick()
    assert outcome(real_scene).state is State.QUEUED
    real_scene.store.advance(101)
    real_scene.tick()
    assert outcome(real_scene).state is State.EXPIRED


def test_the_loss_of_one_call_is_accepted_and_the_others_stay_held(real_scene: Scene) -> None:
    """faults 7"""
    first, second = held_back(real_scene, "a"), held_back(real_scene, "b")

    done = real_scene.run(operators.accept_call(real_scene.space, real_scene.seen(first), real_scene.word("not there")))

    assert done.verdict == "freed"
    assert real_scene.take().call == first
    assert real_scene.state(second) is State.HELD
    assert "went_back" in real_scene.stats().flags
    held_back(real_scene, "c")


def test_an_acceptance_for_one_call_counts_for_this_step_back_only(real_scene: Scene) -> None:
    call = held_back(real_scene)
    real_scene.run(operators.accept_call(real_scene.space, real_scene.seen(call), real_scene.word()))
    accept(real_scene)
    real_scene.store.advance(1)
    assert real_scene.claim(real_scene.pop() or "", seen=2_000) == NotRun("held", "store_went_back")


def test_a_loss_is_accepted_under_what_the_operator_saw(real_scene: Scene) -> None:
    call = held_back(real_scene)
    seen, word = real_scene.seen(call), real_scene.word()
    first, again = (real_scene.run(operators.accept_call(real_scene.space, seen, word)) for _ in range(2))
    assert first == again
    late = real_scene.run(operators.accept_call(real_scene.space, seen, real_scene.word()))
    assert (late.verdict, late.detail) == ("changed", "queued")
    other = real_scene.submit("b", held="approval")
    assert real_scene.run(operators.accept_call(real_scene.space, real_scene.seen(other), word)).verdict == "changed"


def test_an_operator_whose_call_is_gone_raises_the_flag(real_scene: Scene) -> None:
    """faults 5: he saw it under a fence, and nothing has removed it."""
    run = real_scene.start("a", of=PAY)
    real_scene.settle(run, state=State.UNKNOWN)
    seen = real_scene.seen(run.call)
    real_scene.store.redis.delete(f"{real_scene.space.root}call:{run.call}")
    assert real_scene.store.run(operators.resolve(real_scene.space, seen, "1", real_scene.word())).verdict == "gone"
    assert "went_back" in real_scene.stats().flags


def test_the_word_of_a_forgotten_attempt_is_evidence_for_whoever_resolves_the_repeat(real_scene: Scene) -> None:
    """faults 7: the worker says that it happened, and with what value, once nothing of the call is stored."""
    run = real_scene.start("a", of=PAY)
    real_scene.lose(run)
    names = [name for name in real_scene.store.redis.scan_iter(f"*{real_scene.space.name}*") if "test:" not in name]
    real_scene.store.redis.delete(*names)
    for _ in range(2):
        assert real_scene.settle(run, {"id": 7}).verdict == "gone"

    call = held_back(real_scene)

    (said,) = real_scene.record(call).evidence
    assert (said["state"], said["result"], said["fence"]) == ("succeeded", '{"id": 7}', str(run.fence))


def test_a_call_resolved_as_failed_may_be_retried(real_scene: Scene) -> None:
    call = held_back(real_scene)
    real_scene.resolve(call, LOST)
    accept(real_scene)
    assert real_scene.retry(call) == "queued"
    assert real_scene.settle(real_scene.take(), "done").state is State.SUCCEEDED


def test_a_made_up_call_raises_no_flag(real_scene: Scene) -> None:
    """A mistyped key is not proof of a loss."""
    for fence in (None, 0):
        seen = operators.Expected("0" * 32, State.UNKNOWN, fence)
        assert real_scene.run(operators.resolve(real_scene.space, seen, "1", real_scene.word())).verdict == "gone"
    assert "went_back" not in real_scene.stats().flags


def test_a_call_that_waits_for_approval_while_the_flag_stands_is_asked_about_as_ever(real_scene: Scene) -> None:
    held_back(real_scene)
    real_scene.submit("b", of=PAY, held="approval")
    found = outcome(real_scene, "b")
    assert message_code(found) is MessageCode.CALL_NEEDS_APPROVAL
    real_scene.deny(found.key)
    assert_left_open(real_scene, "b")
