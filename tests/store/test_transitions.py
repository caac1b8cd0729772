"""Every row of the state table, and every pair of state and operation that is no row, through the scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.scene import BROKEN, LEASE_MS, Scene, spec
from toolonce.store import execution, operators, recovery
from toolonce.store.execution import Run
from toolonce.store.operators import Seen
from toolonce.store.outcomes import Failure
from toolonce.store.specs import publish
from toolonce.store.states import TABLE, Operation, Row, State, targets

READ = spec("look", "read", max_attempts=2)
LAST_TRY = spec("look", "read", max_attempts=1)

# How to bring a call by way of one row; each returns the call's key.
MOVES: dict[tuple[str | None, str, str], Callable[[Scene], str]] = {}


def move(source: str | None, operation: str, target: str) -> Callable[[Callable[[Scene], str]], Callable[[Scene], str]]:
    def keep(way: Callable[[Scene], str]) -> Callable[[Scene], str]:
        MOVES[source, operation, target] = way
        return way

    return keep


@move(None, "admit", "queued")
def queued(scene: Scene) -> str:
    return scene.submit()


@move(None, "admit", "held")
def held(scene: Scene) -> str:
    return scene.submit(held="approval")


@move(None, "admit", "refused")
def refused(scene: Scene) -> str:
    return scene.submit(refusal=Failure("unknown_tool", "there is no such tool"))


@move("held", "approve", "queued")
def approved(scene: Scene) -> str:
    call = held(scene)
    scene.approve(call)
    return call


@move("held", "deny", "refused")
def denied(scene: Scene) -> str:
    call = held(scene)
    scene.deny(call)
    return call


@move("held", "free", "queued")
def freed(scene: Scene) -> str:
    call = scene.submit(held="no_worker")
    scene.run(publish(scene.space, [spec()]))
    return call


@move("held", "free", "refused")
def free_to_be_refused(scene: Scene) -> str:
    first = scene.submit("a")
    call = scene.submit("b", predecessors=(first,))
    scene.cancel(first)
    return call


@move("held", "cancel", "cancelled")
def cancelled_while_held(scene: Scene) -> str:
    call = held(scene)
    scene.cancel(call)
    return call


@move("held", "expire", "expired")
def expired_while_held(scene: Scene) -> str:
    call = held(scene)
    scene.store.advance(spec().approval_ms)
    scene.tick()
    return call


@move("queued", "claim", "running")
def running(scene: Scene) -> str:
    return scene.start().call


@move("queued", "claim", "held")
def held_by_claim(scene: Scene) -> str:
    call = scene.submit()
    scene.claim(scene.pop() or "", seen=99)
    return call


@move("queued", "cancel", "cancelled")
def cancelled(scene: Scene) -> str:
    call = scene.submit()
    scene.cancel(call)
    return call


@move("queued", "expire", "expired")
def expired(scene: Scene) -> str:
    call = scene.submit()
    scene.store.advance(spec().deadline_ms)
    scene.tick()
    return call


@move("running", "settle", "succeeded")
def succeeded(scene: Scene) -> str:
    run = scene.start()
    scene.settle(run, "done")
    return run.call


@move("running", "settle", "failed")
def failed(scene: Scene) -> str:
    run = scene.start()
    scene.fail(run)
    return run.call


@move("running", "settle", "refused")
def refused_by_hook(scene: Scene) -> str:
    run = scene.start()
    scene.settle(run, state=State.REFUSED)
    return run.call


@move("running", "settle", "unknown")
def unknown(scene: Scene) -> str:
    run = scene.start()
    scene.settle(run, state=State.UNKNOWN)
    return run.call


@move("running", "release", "queued")
def released(scene: Scene) -> str:
    run = scene.start()
    scene.release(run)
    return run.call


@move("running", "release", "held")
def released_to_be_held(scene: Scene) -> str:
    run = scene.start()
    scene.release(run, held="no_worker")
    return run.call


@move("running", "retry_later", "queued")
def waits_to_run_again(scene: Scene) -> str:
    run = scene.start()
    scene.retry_later(run)
    return run.call


@move("running", "lose", "queued")
def lost_read(scene: Scene) -> str:
    run = scene.start(of=READ)
    scene.lose(run)
    return run.call


@move("running", "lose", "failed")
def lost_too_often(scene: Scene) -> str:
    run = scene.start(of=LAST_TRY)
    scene.lose(run)
    return run.call


@move("running", "lose", "unknown")
def lost(scene: Scene) -> str:
    run = scene.start()
    scene.lose(run)
    return run.call


@move("unknown", "settle", "succeeded")
def late_success(scene: Scene) -> str:
    run = scene.start()
    scene.lose(run)
    scene.settle(run, "done")
    return run.call


@move("unknown", "settle", "failed")
def late_failure(scene: Scene) -> str:
    run = scene.start()
    scene.lose(run)
    scene.fail(run)
    return run.call


def after_word(scene: Scene, verdict: str | Failure, operation: Operation) -> str:
    call = unknown(scene)
    scene.run(operators.resolve(scene.space, scene.seen(call), verdict, scene.word(), operation=operation))
    return call


@move("unknown", "resolve", "succeeded")
def resolved(scene: Scene) -> str:
    return after_word(scene, '"done"', Operation.RESOLVE)


@move("unknown", "resolve", "failed")
def resolved_as_failed(scene: Scene) -> str:
    return after_word(scene, BROKEN, Operation.RESOLVE)


@move("unknown", "reconcile", "succeeded")
def reconciled(scene: Scene) -> str:
    return after_word(scene, '"done"', Operation.RECONCILE)


@move("unknown", "reconcile", "failed")
def reconciled_as_failed(scene: Scene) -> str:
    return after_word(scene, BROKEN, Operation.RECONCILE)


@move("unknown", "reconcile", "queued")
def reconciled_to_run_again(scene: Scene) -> str:
    call = unknown(scene)
    scene.run(operators.retry(scene.space, scene.seen(call), scene.word(), operation=Operation.RECONCILE))
    return call


@move("unknown", "retry", "queued")
def unknown_retried(scene: Scene) -> str:
    call = unknown(scene)
    scene.retry(call)
    return call


@move("failed", "retry", "queued")
def failed_retried(scene: Scene) -> str:
    call = failed(scene)
    scene.retry(call)
    return call


@move("queued", "settle", "succeeded")
def late_success_of_a_read(scene: Scene) -> str:
    run = scene.start(of=READ)
    scene.lose(run)
    scene.settle(run, "done")
    return run.call


def row_of(key: tuple[str | None, str, str]) -> Row:
    source, operation, target = key
    return Row(State(source) if source else None, Operation(operation), State(target))


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
    stored = scene.record(call).stored
    return Run(
        call=call,
        fence=int(stored.get("fence", 0)),
        token=stored.get("token", ""),
        worker=stored.get("worker", "worker-1"),
        tool=stored["tool"],
        version="1",
        kind="function",
        arguments="{}",
        idempotency_key=stored["ikey"],
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
            scene.run(execution.interrupt(scene.space, run, reason="drain"))
        case Operation.RESOLVE | Operation.RECONCILE:
            scene.run(operators.resolve(scene.space, seen, '"done"', word, operation=operation))
            if operation is Operation.RECONCILE:
                scene.run(operators.retry(scene.space, seen, scene.word(), operation=operation))
        case Operation.RETRY:
            scene.retry(call)


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
    assert {name: after.stored.get(name) for name in ("result", "error", "fence", "attempt")} == {
        name: before.stored.get(name) for name in ("result", "error", "fence", "attempt")
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
    stale = Seen(run.call, State.UNKNOWN, run.fence - 1)
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
