"""The end of a call and the claim of the next one, in one step."""

from __future__ import annotations

import itertools

import pytest

from tests.support.store.scene import LEASE_MS, Scene, spec
from toolonce.store.model.states import State
from toolonce.store.operations.runs import Ending, NextClaim, NotRun, Run, SettleAnswer, settle
from toolonce.store.operations.tools import publish

_tokens = itertools.count()
DONE = Ending(State.SUCCEEDED, '"done"')


def wish(queue: str = "default", *, token: str = "", **more: bool) -> NextClaim:
    return NextClaim(queue, token or f"wish-{next(_tokens)}", "worker-1.slot", LEASE_MS, **more)


def end(scene: Scene, run: Run, wanted: NextClaim | None) -> SettleAnswer:
    return scene.run(settle(scene.space, run, DONE, wish=wanted))


def end_with_next(scene: Scene, run: Run, wanted: NextClaim | None = None) -> Run:
    following = end(scene, run, wanted or wish()).next
    assert following
    return following


def waiting(scene: Scene, queue: str = "default") -> int:
    return int(scene.store.redis.llen(scene.space.queue_key(queue)))


def test_the_end_of_a_call_takes_the_one_that_has_waited_longest(scene: Scene) -> None:
    run = scene.start("a")
    second, third = scene.submit("b"), scene.submit("c")

    following = end_with_next(scene, run)

    assert (following.call, following.worker, following.attempt) == (second, "worker-1", 1)
    assert following.fence > run.fence
    assert [scene.state(call) for call in (run.call, second, third)] == [
        State.SUCCEEDED, State.RUNNING, State.QUEUED,
    ]  # fmt: skip
    assert end_with_next(scene, following).call == third


def test_it_is_a_claim_like_any_other(scene: Scene) -> None:
    run = scene.start("a")
    second = scene.submit("b")
    following = end_with_next(scene, run)

    assert scene.lose(following) is State.UNKNOWN
    assert [line["op"] for line in scene.record(second).history] == ["admit", "claim", "lose"]


def test_a_word_that_comes_twice_gets_the_same_next_call_and_takes_no_other(scene: Scene) -> None:
    run = scene.start("a")
    scene.submit("b"), scene.submit("c")
    wanted = wish()

    first, again = end(scene, run, wanted), end(scene, run, wanted)

    assert first == again
    assert first.next
    assert waiting(scene) == 1


def test_once_the_next_call_has_ended_the_same_word_gets_none(scene: Scene) -> None:
    run = scene.start("a")
    scene.submit("b"), scene.submit("c")
    wanted = wish()
    end(scene, end_with_next(scene, run, wanted), None)

    assert end(scene, run, wanted) == SettleAnswer("settled", State.SUCCEEDED)
    assert waiting(scene) == 1


def test_where_the_queue_is_empty_or_another_one_is_asked_nothing_is_taken(scene: Scene) -> None:
    run = scene.start("a")
    scene.submit("b", of=spec("bill", queue="billing"))

    assert end(scene, run, wish()) == SettleAnswer("settled", State.SUCCEEDED)
    assert waiting(scene, "billing") == 1


def test_what_came_too_late_takes_nothing(scene: Scene) -> None:
    run = scene.start("a")
    scene.lose(run)
    scene.resolve(run.call)
    scene.submit("b")

    assert end(scene, run, wish()) == SettleAnswer("late", State.SUCCEEDED)
    assert waiting(scene) == 1


def test_what_is_told_of_a_record_that_is_gone_takes_nothing(scene: Scene) -> None:
    run = scene.start("a")
    scene.submit("b")
    scene.store.redis.delete(scene.space.record(run.call))

    assert scene.store.run(settle(scene.space, run, DONE, wish=wish())) == SettleAnswer("gone")
    assert waiting(scene) == 1


def test_the_slot_of_a_limit_that_falls_free_is_there_for_the_next_call(scene: Scene) -> None:
    scene.limit("tool:pay", 1)
    run = scene.start("a")
    second = scene.submit("b")
    assert isinstance(scene.claim(scene.pop() or ""), NotRun)

    assert end_with_next(scene, run).call == second


def test_calls_that_cannot_run_now_are_passed_over(scene: Scene) -> None:
    scene.limit("tool:pay", 1)
    run = scene.start("a", of=spec("look", "read"))
    scene.start("busy")
    over_the_limit, cancelled = scene.submit("b"), scene.submit("c", of=spec("look", "read"))
    last = scene.submit("d", of=spec("look", "read"))
    scene.cancel(cancelled)

    assert end_with_next(scene, run).call == last
    assert scene.state(over_the_limit) is State.QUEUED
    assert waiting(scene) == 0


def test_the_calls_of_a_paused_tool_are_parked_and_passed_over(scene: Scene) -> None:
    run = scene.start("a", of=spec("look", "read"))
    paused, last = scene.submit("b"), scene.submit("c", of=spec("look", "read"))
    scene.pause("tool:pay")

    assert end_with_next(scene, run).call == last
    assert (scene.state(paused), scene.record(paused).fields.reason) == (State.QUEUED, "paused")
    scene.resume("tool:pay")
    assert scene.take().call == paused


def test_calls_over_their_rate_are_passed_over_and_it_is_told_when_one_may_start(scene: Scene) -> None:
    rated = spec("search", "read", rate="1/min")
    scene.store.run(publish(scene.space, [rated]))
    run = scene.start("a", of=rated)
    over, last = scene.submit("b", of=rated), scene.submit("c", of=spec("look", "read"))

    heard = end(scene, run, wish())

    assert heard.next
    assert heard.next.call == last
    assert heard.due_ms is not None
    assert 50_000 < heard.due_ms <= 61_000
    assert scene.record(over).fields.waits == "rate:tool:search"


def test_few_are_passed_over_in_one_step(scene: Scene) -> None:
    scene.limit("tool:pay", 1)
    run = scene.start("a", of=spec("look", "read"))
    scene.start("busy")
    for name in "bcd":
        scene.submit(name)
    last = scene.submit("e", of=spec("look", "read"))

    assert end(scene, run, wish()).next is None
    assert scene.take().call == last


def test_an_entry_that_is_no_pointer_is_left_to_the_worker(scene: Scene) -> None:
    run = scene.start("a")
    scene.store.redis.rpush(scene.space.queue_key("default"), "not-a-pointer")
    scene.submit("b")

    assert end(scene, run, wish()).next is None
    assert scene.pop() == "not-a-pointer"


def test_a_call_whose_record_is_broken_is_passed_over(real_scene: Scene) -> None:
    scene = Scene(real_scene.store, audited=False)
    run = scene.start("a")
    broken, last = scene.submit("b"), scene.submit("c")
    scene.store.redis.hset(scene.space.record(broken), "attempt", "many")

    assert end_with_next(scene, run).call == last
    assert scene.state(run.call) is State.SUCCEEDED


def test_beyond_the_memory_reserve_nothing_is_taken(scene: Scene) -> None:
    run = scene.start("a")
    scene.submit("b")
    scene.store.redis.hset(f"{scene.space.root}flags", "full", "1")

    assert end(scene, run, wish()).next is None
    assert waiting(scene) == 1


def test_while_too_few_replicas_answer_mutating_calls_are_passed_over(scene: Scene) -> None:
    run = scene.start("a")
    paying, reading = scene.submit("b"), scene.submit("c", of=spec("look", "read"))

    following = end_with_next(scene, run, wish().barred)

    assert (following.call, following.is_forgettable) == (reading, True)
    assert scene.state(paying) is State.QUEUED


def test_after_the_store_went_back_mutating_calls_are_held(scene: Scene) -> None:
    run = scene.start("a")
    second = scene.submit("b")
    scene.store.redis.hset(f"{scene.space.root}flags", "went_back", "1")

    assert end(scene, run, wish()).next is None
    assert (scene.state(second), scene.record(second).fields.reason) == (State.HELD, "store_went_back")


@pytest.mark.parametrize("asks", [True, False])
def test_workers_that_ask_for_a_next_call_and_those_that_do_not_work_side_by_side(scene: Scene, asks: bool) -> None:
    calls = [scene.submit(name) for name in "abcd"]
    old, new = scene.take(), scene.take()

    following = end(scene, new, wish() if asks else None).next
    end(scene, old, None)
    for run in filter(None, (following, *(scene.take() for _ in range(1 if asks else 2)))):
        end(scene, run, None)

    assert {scene.state(call) for call in calls} == {State.SUCCEEDED}
