"""A server that has lost writes gives a fence out a second time: the attempts are still told apart.

That is the common loss: a failover drops the last claims only, and others claim at once, so that the watermark
is passed before anyone compares it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.store.scene import LEASE_MS, Scene, spec
from toolonce.store.model.states import State
from toolonce.store.operations import operators, recovery, runs
from toolonce.store.operations.runs import NotRun, Run

PAY = spec("pay", begins=True)


@pytest.fixture
def attempts(real_scene: Scene) -> tuple[Run, Run]:
    """One attempt that the server has forgotten, and another one under the same fence."""
    redis = real_scene.store.redis
    real_scene.submit("a", of=PAY)
    names = [name for name in redis.scan_iter("*") if real_scene.space.name in str(name)]
    before = {name: redis.execute_command("DUMP", name, NEVER_DECODE=True) for name in names}
    first = real_scene.take()
    for name in redis.scan_iter("*"):
        if real_scene.space.name in str(name):
            redis.delete(name)
    for name, value in before.items():
        redis.restore(name, 0, value)
    second = real_scene.take()
    assert (first.call, first.fence) == (second.call, second.fence)
    return first, second


def flags(scene: Scene) -> set[str]:
    return set(scene.store.redis.hkeys(f"{scene.space.root}flags"))


def test_only_one_of_two_attempts_under_one_fence_may_begin(real_scene: Scene, attempts: tuple[Run, Run]) -> None:
    forgotten, known = attempts
    assert real_scene.run(runs.begin(real_scene.space, forgotten)) == "lost"
    assert real_scene.run(runs.begin(real_scene.space, known)) == "begun"


def test_a_forgotten_attempt_cannot_give_back_or_give_up_what_another_one_runs(
    real_scene: Scene, attempts: tuple[Run, Run]
) -> None:
    forgotten, known = attempts
    space = real_scene.space
    assert real_scene.run(runs.release(space, forgotten)) == "lost"
    assert real_scene.run(runs.interrupt(space, forgotten, reason="drain")) == "lost"
    assert real_scene.run(runs.declare(space, forgotten)) == "lost"
    assert not real_scene.run(runs.progress(space, forgotten, 0.5, "half"))
    assert real_scene.state(known.call) is State.RUNNING


@pytest.mark.parametrize("word", ["renew", "settle"])
def test_its_next_word_raises_the_flag_although_no_fence_is_higher(
    real_scene: Scene, attempts: tuple[Run, Run], word: str
) -> None:
    forgotten, known = attempts
    assert not flags(real_scene)
    if word == "renew":
        both = runs.renew(real_scene.space, [forgotten, known], lease_ms=LEASE_MS)
        assert real_scene.run(both) == ("lost", "kept")
    else:
        assert real_scene.settle(forgotten, "mine").verdict == "late"
    assert "went_back" in flags(real_scene)
    assert real_scene.settle(known, "mine").verdict == "settled"


def test_a_word_for_a_claim_that_the_server_has_forgotten_raises_the_flag(real_scene: Scene) -> None:
    """The call waits in the queue again, and others have claimed more than was lost."""
    call = real_scene.submit("a", of=PAY)
    run = real_scene.take()
    record = f"{real_scene.space.root}call:{call}"
    real_scene.run(runs.release(real_scene.space, run))
    real_scene.store.redis.hdel(record, "fence", "token")

    assert real_scene.settle(run, "mine").verdict == "late"
    assert "went_back" in flags(real_scene)


def test_a_worker_that_was_overtaken_raises_no_flag(real_scene: Scene) -> None:
    """A lease that was lost in the usual way proves nothing about the server."""
    run = real_scene.start("a", of=PAY)
    real_scene.lose(run)
    assert real_scene.run(runs.renew(real_scene.space, [run], lease_ms=LEASE_MS)) == ("lost",)
    successor = real_scene.take()
    assert real_scene.run(runs.renew(real_scene.space, [run, successor], lease_ms=LEASE_MS)) == ("lost", "kept")
    assert real_scene.settle(run, "late").verdict == "late"
    assert not flags(real_scene)


def forget_record(scene: Scene, run: Run) -> None:
    """The server has lost the claim and what was stored before it, and has given out other fences meanwhile."""
    redis, root = scene.store.redis, scene.space.root
    kept = {f"{root}{name}" for name in ("test:seconds", "test:micros", "fence", "marks")}
    for name in redis.scan_iter(f"{root}*"):
        if name not in kept:
            redis.delete(name)
    redis.incrby(f"{root}fence", 10)


Saying = Callable[[Scene, Run], object]
WORDS: dict[str, Saying] = {
    "renew": lambda scene, run: scene.run(runs.renew(scene.space, [run], lease_ms=LEASE_MS)),
    "begin": lambda scene, run: scene.run(runs.begin(scene.space, run)),
    "declare": lambda scene, run: scene.run(runs.declare(scene.space, run)),
    "progress": lambda scene, run: scene.run(runs.progress(scene.space, run, 0.5, "half")),
    "release": lambda scene, run: scene.release(run),
    "retry_later": lambda scene, run: scene.retry_later(run),
    "interrupt": lambda scene, run: scene.run(runs.interrupt(scene.space, run, reason="drain")),
    "defer_reconcile": lambda scene, run: scene.run(runs.defer_reconcile(scene.space, [run], wait_ms=LEASE_MS)),
    "settle": lambda scene, run: scene.settle(run, "mine"),
}


@pytest.mark.parametrize("word", WORDS)
def test_any_word_of_a_running_call_whose_record_is_gone_raises_the_flag(real_scene: Scene, word: str) -> None:
    """faults 5: the mark was passed already, so that no fence is higher; only the missing record tells."""
    run = real_scene.start("a", of=PAY)
    forget_record(real_scene, run)

    WORDS[word](real_scene, run)

    assert run.call in real_scene.stats().flags["went_back_because"]
    again = real_scene.submit("a", of=PAY)
    assert real_scene.claim(real_scene.pop() or "") == NotRun("held", "store_went_back")
    assert again == run.call


@pytest.mark.parametrize("word", WORDS)
def test_a_record_that_retention_removed_is_not_taken_for_a_loss(real_scene: Scene, word: str) -> None:
    """faults 5: a handler that outlives the tombstone of its call."""
    run = real_scene.start("a", of=PAY)
    real_scene.settle(run)
    real_scene.run(recovery.purge(real_scene.space, [run.call]))
    WORDS[word](real_scene, run)
    real_scene.store.advance(recovery.Retention().tombstone_ms + 1)
    real_scene.run(recovery.forget(real_scene.space, State.SUCCEEDED, recovery.Retention()))
    assert real_scene.lookup(real_scene.call("a", of=PAY)) == (None,)

    WORDS[word](real_scene, run)

    assert not flags(real_scene)


@pytest.mark.parametrize("word", WORDS)
def test_what_an_accepted_loss_has_covered_raises_no_flag_again(real_scene: Scene, word: str) -> None:
    """faults 5: the handler goes on, and says so, after a person has compared."""
    run = real_scene.start("a", of=PAY)
    forget_record(real_scene, run)
    WORDS["renew"](real_scene, run)
    real_scene.run(operators.accept_loss(real_scene.space, real_scene.word()))

    WORDS[word](real_scene, run)

    assert "went_back" not in flags(real_scene)


def test_a_second_loss_after_an_accepted_one_raises_the_flag_again(real_scene: Scene) -> None:
    run = real_scene.start("a", of=PAY)
    forget_record(real_scene, run)
    WORDS["renew"](real_scene, run)
    real_scene.run(operators.accept_loss(real_scene.space, real_scene.word()))
    later = real_scene.start("b", of=PAY)
    forget_record(real_scene, later)

    WORDS["settle"](real_scene, later)

    assert later.call in real_scene.stats().flags["went_back_because"]
