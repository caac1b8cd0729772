"""How to bring a call by way of each row of the state table: one short history per row."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.store.scene import BROKEN, Scene, spec
from toolonce.store.model.outcomes import Failure
from toolonce.store.model.states import Operation, State
from toolonce.store.operations import operators
from toolonce.store.operations.tools import publish

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


ONCE = spec("pay", unique_by=("order",))
ORDER = {"order": "A-17"}


def _followed(scene: Scene, state: State) -> str:
    run = scene.start("a", ORDER, of=ONCE)
    follower = scene.submit("b", ORDER, of=ONCE)
    scene.settle(run, state=state)
    return follower


@move("held", "follow", "succeeded")
def followed_to_success(scene: Scene) -> str:
    return _followed(scene, State.SUCCEEDED)


@move("held", "follow", "failed")
def followed_to_failure(scene: Scene) -> str:
    return _followed(scene, State.FAILED)


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


def held_back(scene: Scene) -> str:
    """Held since the store went back."""
    call = scene.submit()
    scene.claim(scene.pop() or "", seen=1_000)
    return call


@move("held", "resolve", "succeeded")
def resolved_while_held_back(scene: Scene) -> str:
    call = held_back(scene)
    scene.resolve(call)
    return call


@move("held", "resolve", "failed")
def resolved_as_failed_while_held_back(scene: Scene) -> str:
    call = held_back(scene)
    scene.resolve(call, BROKEN)
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
