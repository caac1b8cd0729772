"""Every row of the state table, and every pair of state and operation that is no row, through the scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.store.moves import (
    MOVES,
    cancelled,
    denied,
    expired,
    failed,
    held,
    queued,
    running,
    succeeded,
    unknown,
)
from tests.support.store.scene import LEASE_MS, Scene, spec
from toolonce.store.model.states import TABLE, Operation, State, Transition, targets
from toolonce.store.operations import operators, recovery, runs
from toolonce.store.operations.operators import Expected
from toolonce.store.operations.runs import Run
from toolonce.store.operations.tools import publish


def row_of(key: tuple[str | None, str, str]) -> Transition:
    source, operation, target = key
    return Transition(State(source) if source else None, Operation(operation), State(target))


def test_a_way_is_known_for_every_row_of_the_table() -> None:
    assert {row_of(key) for key in MOVES} == TABLE


@pytest.mark.parametrize("key", MOVES, ids=lambda key: "-".join(map(str, key)))
def test_each_row_of_the_table_is_a_thing_that_the_scripts_do(scene: Scene, key: tuple[str | None, str, str]) -> None:
    call = MOVES[key](scene)
    last = scene.record(call).history[-1]
    assert (last.get("from"), last["op"], last["to"]) == key
    assert scene.state(call) == key[2]


ARRIVALS: dict[State, Callable[[Scene], str]] = {
    State.HELD: held,
    State.QUEUED: queued,
    State.RUNNING: running,
    State.UNKNOWN: unknown,
    State.SUCCEEDED: succeeded,
    State.FAILED: failed,
    State.REFUSED: denied,
    State.CANCELLED: cancelled,
    State.EXPIRED: expired,
}


def last_run(scene: Scene, call: str) -> Run:
    """The run of the call's newest fence, or one that never was."""
    record = scene.record(call)
    stored = record.fields
    return Run(
        call=call,
        fence=stored.fence,
        token=stored.token,
        worker=stored.worker or "worker-1",
        tool=stored.tool,
        version="1",
        kind="function",
        arguments="{}",
        idempotency_key=record.idempotency_key,
        scope="scope",
        tenant="",
        turn_id="turn",
        call_id=None,
        position=0,
        effect=spec().effect,
        begins=False,
        attempt=1,
        attempt_limit=1,
        deadline_at=None,
        secret=False,
        cancel_requested=False,
    )


def try_operation(scene: Scene, operation: Operation, call: str) -> None:
    """Ask for the operation as someone would who knows all about the call."""
    run, seen, word = last_run(scene, call), scene.seen(call), scene.word()
    match operation:
        case Operation.ADMIT:
            scene.admit(scene.call())
        case Operation.APPROVE:
            scene.approve(call)
        case Operation.DENY:
            scene.deny(call)
        case Operation.FREE:
            scene.run(publish(scene.space, [spec()]))
            scene.run(operators.accept_loss(scene.space, word))
        case Operation.CANCEL:
            scene.cancel(call)
        case Operation.EXPIRE:
            scene.store.advance(10 * spec().approval_ms)
            scene.tick()
        case Operation.CLAIM:
            scene.claim(run.idempotency_key)
        case Operation.SETTLE:
            for state in State:
                scene.settle(run, state=state)
        case Operation.RELEASE:
            scene.release(run)
        case Operation.RETRY_LATER:
            scene.retry_later(run)
        case Operation.LOSE:
            scene.store.advance(LEASE_MS + 1)
            scene.reclaim()
            scene.run(runs.interrupt(scene.space, run, reason="drain"))
        case Operation.RESOLVE | Operation.RECONCILE:
            scene.run(operators.resolve(scene.space, seen, '"done"', word, operation=operation))
            if operation is Operation.RECONCILE:
                scene.run(operators.retry(scene.space, seen, scene.word(), operation=operation))
        case Operation.RETRY:
            scene.retry(call)
        case Operation.FOLLOW:
            scene.run(recovery.follow(scene.space))


def refusals() -> Iterator[tuple[State, Operation]]:
    for state in State:
        for operation in Operation:
            if not targets(state, operation):
                yield state, operation


@pytest.mark.parametrize(("state", "operation"), list(refusals()))
def test_what_is_no_row_of_the_table_changes_no_state(scene: Scene, state: State, operation: Operation) -> None:
    call = ARRIVALS[state](scene)
    before = scene.record(call)
    assert before.state is state
    try_operation(scene, operation, call)
    after = scene.record(call)
    assert after.state is state
    assert {name: after.fields.values.get(name) for name in ("result", "error", "fence", "attempt")} == {
        name: before.fields.values.get(name) for name in ("result", "error", "fence", "attempt")
    }


@pytest.mark.parametrize("state", State)
def test_an_attempt_ends_only_in_the_states_that_the_table_names(scene: Scene, state: State) -> None:
    run = scene.start()
    if state in targets(State.RUNNING, Operation.SETTLE):
        assert scene.settle(run, state=state).state is state
    else:
        scene.settle(run, state=state)
        assert scene.state(run.call) is State.RUNNING


def test_an_operator_who_saw_another_fence_changes_nothing(scene: Scene) -> None:
    run = scene.start()
    scene.lose(run)
    stale = Expected(run.call, State.UNKNOWN, run.fence - 1)
    for invocation in (
        operators.retry(scene.space, stale, scene.word()),
        operators.resolve(scene.space, stale, "1", scene.word()),
    ):
        done = scene.run(invocation)
        assert (done.verdict, done.detail, done.more) == ("changed", "unknown", str(run.fence))
    assert scene.state(run.call) is State.UNKNOWN


def test_no_timer_leads_out_of_unknown(scene: Scene) -> None:
    run = scene.start()
    scene.lose(run)
    scene.store.advance(1_000 * recovery.DAY_MS)
    scene.tick()
    scene.reclaim()
    for state in State:
        if state.is_settled:
            scene.run(recovery.forget(scene.space, state, recovery.Retention()))
    assert scene.state(run.call) is State.UNKNOWN
