"""Is it a repeat, and may it run? Two questions need two answers, and neither covers a second run (faults 3)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.store.scene import Scene, spec
from toolonce.store.model.states import Operation, State
from toolonce.store.operations import operators, runs
from toolonce.store.operations.operators import Question

BILL = {"cents": 5}
ONCE = spec("bill", hold_duplicates=True)
SAFE = spec("bill", begins=True)


def _reason(scene: Scene, call: str) -> str:
    return scene.record(call).fields.reason


def _ask(scene: Scene, run: runs.Run) -> None:
    """What a worker does whose hook asks."""
    scene.run(runs.release(scene.space, run, held="approval", approval_ms=1_000))


def test_saying_that_a_call_is_no_repeat_does_not_say_that_it_may_run(scene: Scene) -> None:
    """Faults 3."""
    scene.submit("a", BILL, of=ONCE)
    second = scene.submit("b", BILL, of=ONCE)
    scene.take()
    assert scene.approve(second) == "approved"
    run = scene.take()
    assert (run.call, run.approved) == (second, False)

    _ask(scene, run)
    assert scene.approve(second) == "approved"
    assert scene.take().approved


def test_saying_that_a_call_may_run_does_not_say_that_it_is_no_repeat(scene: Scene) -> None:
    """Faults 3: a tool with approval="always"."""
    scene.submit("a", BILL, of=ONCE)
    second = scene.admit(scene.call("b", BILL, of=ONCE, held="approval"))[0].key
    scene.take()
    scene.store.advance(ONCE.approval_ms - 1)
    assert scene.approve(second) == "approved"
    assert (scene.state(second), _reason(scene, second)) == (State.HELD, "duplicate")
    scene.store.advance(ONCE.approval_ms - 1)  # each question has a lifetime of its own
    assert scene.approve(second) == "approved"
    assert scene.take().approved


def test_a_second_question_that_nobody_answers_expires(scene: Scene) -> None:
    """Faults 3."""
    scene.submit("a", BILL, of=ONCE)
    second = scene.admit(scene.call("b", BILL, of=ONCE, held="approval"))[0].key
    scene.approve(second)
    scene.store.advance(ONCE.approval_ms)
    assert scene.approve(second) == "late"
    scene.tick()
    assert scene.state(second) is State.EXPIRED


def test_either_question_can_be_answered_with_no(scene: Scene) -> None:
    """Faults 3."""
    scene.submit("a", BILL, of=ONCE)
    second = scene.admit(scene.call("b", BILL, of=ONCE, held="approval"))[0].key
    scene.approve(second)
    assert scene.deny(second) == "denied"
    assert scene.approve(second) == "decided"


@pytest.mark.parametrize("held", ["approval", ""])
def test_an_answer_to_one_question_that_comes_twice_does_not_answer_the_other(scene: Scene, held: str) -> None:
    """Faults 3: two clicks, each with a request id of its own."""
    scene.submit("a", BILL, of=ONCE)
    scene.take()
    second = scene.admit(scene.call("b", BILL, of=ONCE, held=held))[0].key
    ikey = scene.record(second).idempotency_key
    shown = Question(_reason(scene, second), 0)
    assert scene.run(operators.approve(scene.space, second, ikey, scene.word(), shown=shown)).verdict == "approved"
    if not held:
        _ask(scene, scene.take())

    again = scene.run(operators.approve(scene.space, second, ikey, scene.word(), shown=shown))
    no = scene.run(operators.deny(scene.space, second, ikey, scene.word(), shown=shown))

    assert (again.verdict, no.verdict, scene.state(second)) == ("changed", "changed", State.HELD)


def _approved_run(scene: Scene, **terms: Any) -> runs.Run:
    call = scene.submit("a", BILL, of=spec("bill", **terms), held="approval")
    scene.approve(call)
    run = scene.take()
    assert run.approved
    return run


@pytest.mark.parametrize("end", ["lose", "fail"])
def test_an_operators_retry_is_a_second_run_that_no_approval_covers(scene: Scene, end: str) -> None:
    """Faults 3."""
    run = _approved_run(scene)
    getattr(scene, end)(run)
    assert scene.retry(run.call) == "queued"
    again = scene.take()
    assert (again.call, again.approved) == (run.call, False)
    _ask(scene, again)
    assert scene.approve(run.call) == "approved"
    assert scene.take().approved


def test_an_answer_given_about_the_run_before_does_not_let_a_retried_one_run(scene: Scene) -> None:
    """Faults 3: the click is bound to the fence that was shown."""
    run = scene.start("a", BILL)
    _ask(scene, run)
    ikey, shown = scene.record(run.call).idempotency_key, Question("approval", run.fence)
    scene.run(operators.approve(scene.space, run.call, ikey, scene.word(), shown=shown))
    scene.fail(scene.take())
    scene.retry(run.call)
    _ask(scene, scene.take())

    late = scene.run(operators.approve(scene.space, run.call, ikey, scene.word(), shown=shown))

    assert (late.verdict, scene.state(run.call)) == ("changed", State.HELD)


def test_a_retry_asks_again_whether_it_is_a_repeat(scene: Scene) -> None:
    """Faults 3."""
    scene.submit("a", BILL, of=ONCE)
    scene.take()
    second = scene.submit("b", BILL, of=ONCE)
    scene.approve(second)
    scene.fail(scene.take())

    assert scene.retry(second) == "held"
    assert (scene.state(second), _reason(scene, second)) == (State.HELD, "duplicate")
    assert scene.approve(second) == "approved"
    assert scene.take().call == second


def test_a_reconcile_that_lets_a_call_run_again_takes_its_approval_back(scene: Scene) -> None:
    """Faults 3: rerun_absent."""
    run = _approved_run(scene)
    scene.lose(run)
    word = operators.retry(scene.space, scene.seen(run.call), scene.word(), operation=Operation.RECONCILE)
    assert scene.run(word).verdict == "queued"
    assert not scene.take().approved


def test_an_approval_holds_for_the_automatic_attempts_of_its_run(scene: Scene) -> None:
    """Faults 3: NotStarted, a worker that gave it back or died before the effect: nobody has to be asked again."""
    run = _approved_run(scene, begins=True)
    scene.retry_later(run)
    scene.store.advance(1_000)
    scene.tick()
    run = scene.take()
    assert run.approved
    scene.release(run)
    run = scene.take()
    assert run.approved
    assert scene.lose(run) is State.QUEUED
    assert scene.take().approved


def test_who_denies_another_run_does_not_say_that_none_was_made(scene: Scene) -> None:
    """Faults 3."""
    run = scene.start("a", BILL)
    scene.lose(run)
    scene.retry(run.call)
    _ask(scene, scene.take())
    scene.deny(run.call)
    failure = scene.record(run.call).failure
    assert failure
    assert failure.message.startswith("not run again: a person denied it")
