"""A server that has lost writes gives a fence out a second time: the attempts are still told apart.

That is the common loss: a failover drops the last claims only, and others claim at once, so that the high-water mark
is passed before anyone compares it.
"""

from __future__ import annotations

import pytest

from tests.support.scene import LEASE_MS, Scene, spec
from toolonce.store import execution
from toolonce.store.execution import Run
from toolonce.store.states import State

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
    assert real_scene.run(execution.begin(real_scene.space, forgotten)) == "lost"
    assert real_scene.run(execution.begin(real_scene.space, known)) == "begun"


def test_a_forgotten_attempt_cannot_give_back_or_give_up_what_another_one_runs(
    real_scene: Scene, attempts: tuple[Run, Run]
) -> None:
    forgotten, known = attempts
    space = real_scene.space
    assert real_scene.run(execution.release(space, forgotten)) == "lost"
    assert real_scene.run(execution.interrupt(space, forgotten, reason="drain")) == "lost"
    assert real_scene.run(execution.declare(space, forgotten)) == "lost"
    assert not real_scene.run(execution.progress(space, forgotten, 0.5, "half"))
    assert real_scene.state(known.call) is State.RUNNING


@pytest.mark.parametrize("word", ["renew", "settle"])
def test_its_next_word_raises_the_flag_although_no_fence_is_higher(
    real_scene: Scene, attempts: tuple[Run, Run], word: str
) -> None:
    forgotten, known = attempts
    assert not flags(real_scene)
    if word == "renew":
        both = execution.renew(real_scene.space, [forgotten, known], lease_ms=LEASE_MS)
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
    real_scene.run(execution.release(real_scene.space, run))
    real_scene.store.redis.hdel(record, "fence", "token")

    assert real_scene.settle(run, "mine").verdict == "late"
    assert "went_back" in flags(real_scene)


def test_a_worker_that_was_overtaken_raises_no_flag(real_scene: Scene) -> None:
    """A lease that was lost in the usual way proves nothing about the server."""
    run = real_scene.start("a", of=PAY)
    real_scene.lose(run)
    assert real_scene.run(execution.renew(real_scene.space, [run], lease_ms=LEASE_MS)) == ("lost",)
    successor = real_scene.take()
    assert real_scene.run(execution.renew(real_scene.space, [run, successor], lease_ms=LEASE_MS)) == ("lost", "kept")
    assert real_scene.settle(run, "late").verdict == "late"
    assert not flags(real_scene)
