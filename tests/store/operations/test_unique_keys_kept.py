"""How long a unique key is kept, what people may say about its calls, and what happens where many calls share it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.store.scene import LEASE_MS, Scene, spec
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.outcomes import Failure, Outcome
from toolonce.store.model.specs import ToolSpec
from toolonce.store.model.states import SETTLED, State
from toolonce.store.operations import operators, queries, recovery, runs
from toolonce.store.operations.recovery import DAY_MS
from toolonce.store.operations.runs import Ending

ONCE = spec("bill", unique_by=("order",))
DAYS = spec("bill", unique_by=("order",), unique_for_ms=30 * DAY_MS)
BILL = {"order": "A-17", "cents": 5}
OTHER = {"order": "A-17", "cents": 6}
NO_EFFECT = Failure("no_account", "there is no such account", effect="none")


def submit(scene: Scene, call: str, arguments: Any = None, of: ToolSpec = ONCE, **more: Any) -> Outcome:
    return scene.admit(scene.call(call, BILL if arguments is None else arguments, of=of, **more))[0]


def outcome_of(scene: Scene, key: str) -> Outcome:
    turn = scene.run(queries.turn(scene.space, scene.turn().key))
    return next(outcome for outcome in turn if outcome.key == key)


def fail_without_effect(scene: Scene, run: runs.Run) -> None:
    scene.run(runs.settle(scene.space, run, Ending(State.FAILED, failure=NO_EFFECT)))


def forget(scene: Scene, keep: recovery.Retention) -> None:
    for state in SETTLED:
        scene.run(recovery.forget(scene.space, state, keep))


def follow(scene: Scene) -> int:
    """Sweep until nothing is left."""
    told = 0
    while True:
        done = scene.run(recovery.follow(scene.space))
        told += done.counts["followed"]
        if not done.more:
            return told


# What a person may say.


def test_a_follower_is_answered_by_nobody_but_the_first(scene: Scene) -> None:
    first = submit(scene, "a").key
    second = submit(scene, "b").key
    ikey = scene.record(second).idempotency_key
    done = scene.run(operators.approve(scene.space, second, ikey, scene.word()))
    assert (done.verdict, done.detail, done.more, done.refused) == ("taken", first, "queued", True)
    assert scene.deny(second) == "taken"
    assert scene.cancel(second) == "cancelled"
    assert scene.state(first) is State.QUEUED


def test_a_retry_takes_the_key_or_names_the_call_that_has_it(scene: Scene) -> None:
    run = scene.start("a", BILL, of=ONCE)
    fail_without_effect(scene, run)
    second = submit(scene, "b", OTHER).key
    done = scene.run(operators.retry(scene.space, scene.seen(run.call), scene.word()))
    assert (done.verdict, done.detail, done.more) == ("taken", second, "queued")
    assert scene.state(run.call) is State.FAILED

    scene.cancel(second)
    assert scene.retry(run.call) == "queued"
    assert submit(scene, "c", OTHER).state is State.REFUSED


def test_the_retry_of_a_call_that_got_the_words_of_the_first_is_refused(scene: Scene) -> None:
    run = scene.start("a", BILL, of=ONCE)
    second = submit(scene, "b").key
    scene.fail(run)
    assert scene.retry(second) == "taken"
    assert scene.retry(run.call) == "queued"
    assert scene.take().call == run.call


def test_an_approval_takes_the_key_or_names_the_call_that_has_it(scene: Scene) -> None:
    first = submit(scene, "a", held="approval").key
    index = f"{scene.space.root}unique:{scene.record(first).fields.values['unique']}"
    scene.store.redis.delete(index)  # as where the store has lost a write
    second = submit(scene, "b", OTHER).key
    ikey = scene.record(first).idempotency_key
    done = scene.run(operators.approve(scene.space, first, ikey, scene.word()))
    assert (done.verdict, done.detail, scene.state(first)) == ("taken", second, State.HELD)
    scene.cancel(second)
    assert scene.approve(first) == "approved"
    assert submit(scene, "c", OTHER).state is State.REFUSED


def test_the_second_of_two_retries_is_refused(scene: Scene) -> None:
    calls = []
    for name in "ab":
        run = scene.start(name, BILL, of=ONCE)
        fail_without_effect(scene, run)
        calls.append(run.call)
    assert [scene.retry(call) for call in calls] == ["queued", "taken"]
    assert len(scene.queued_jobs()) == 1


def test_a_retried_call_whose_attempt_had_no_effect_may_say_so_again(scene: Scene) -> None:
    run = scene.start("a", BILL, of=ONCE)
    fail_without_effect(scene, run)
    scene.retry(run.call)
    assert not scene.take().ran_before


# How long it lasts.


def test_a_key_lasts_as_long_as_the_tombstone_also_when_the_body_is_purged(scene: Scene) -> None:
    scene.settle(scene.start("a", BILL, of=ONCE), "sent")
    first = scene.call("a").identity.key
    scene.run(recovery.purge(scene.space, [first]))
    second = submit(scene, "b")
    assert (second.state, second.is_forgotten, second.value) == (State.SUCCEEDED, True, None)
    assert submit(scene, "c", OTHER).state is State.REFUSED

    scene.store.advance(91 * DAY_MS)
    forget(scene, recovery.Retention())
    forget(scene, recovery.Retention())
    assert submit(scene, "d", OTHER).state is State.QUEUED


def test_a_key_with_a_time_of_its_own_is_free_when_it_is_over(scene: Scene) -> None:
    run = scene.start("a", BILL, of=DAYS)
    scene.store.advance(100 * DAY_MS)  # it counts from the end
    scene.run(runs.renew(scene.space, [run], lease_ms=LEASE_MS))
    scene.settle(run, 1)
    scene.store.advance(30 * DAY_MS - 1)
    assert submit(scene, "b", OTHER, of=DAYS).state is State.REFUSED
    scene.store.advance(1)
    third = submit(scene, "c", OTHER, of=DAYS)
    assert third.state is State.QUEUED
    forget(scene, recovery.Retention(tombstone_ms=1, body_ms=1))
    assert submit(scene, "d", BILL, of=DAYS).state is State.REFUSED, "the old tombstone takes no key with it"


def test_a_tombstone_lives_as_long_as_its_key(scene: Scene) -> None:
    scene.settle(scene.start("a", BILL, of=DAYS), "sent")
    keep = recovery.Retention(body_ms=DAY_MS, tombstone_ms=2 * DAY_MS)
    for _ in range(29):
        scene.store.advance(DAY_MS)
        forget(scene, keep)
        forget(scene, keep)
    assert submit(scene, "b", of=DAYS).state is State.SUCCEEDED
    scene.store.advance(2 * DAY_MS)
    forget(scene, keep)
    assert not scene.store.redis.exists(scene.space.record(scene.call("a").identity.key))
    assert submit(scene, "c", OTHER, of=DAYS).state is State.QUEUED


def test_nothing_is_left_of_a_key_whose_calls_are_gone(scene: Scene) -> None:
    run = scene.start("a", BILL, of=ONCE)
    submit(scene, "b")
    fail_without_effect(scene, run)
    scene.settle(scene.take(), 1)
    scene.store.advance(91 * DAY_MS)
    for _ in range(2):
        forget(scene, recovery.Retention())
    assert not list(scene.store.redis.scan_iter(f"{scene.space.root}unique*"))


# Many, and beside other rules.


@pytest.mark.parametrize("end", ["succeeds", "fails", "is unknown", "has no effect"])
def test_many_followers_are_told_a_bounded_number_at_a_time_and_the_sweep_goes_on(scene: Scene, end: str) -> None:
    run = scene.start("a", BILL, of=ONCE)
    scene.admit(*[scene.call(f"f{number}", BILL, of=ONCE, position=number) for number in range(220)])
    if end == "succeeds":
        scene.settle(run, 1)
    elif end == "fails":
        scene.fail(run)
    elif end == "is unknown":
        scene.lose(run)
    else:
        fail_without_effect(scene, run)
    held = scene.stats().counts["tool:held:bill"]
    assert held >= 219 - 50 if end in ("succeeds", "fails") else held >= 219
    late = submit(scene, "late")
    told = follow(scene)
    assert told >= 160
    followers = [scene.call(f"f{number}").identity.key for number in range(220)] + [late.key]
    states = scene.states(followers)
    if end == "succeeds":
        assert set(states) == {State.SUCCEEDED}
    elif end == "fails":
        assert set(states) == {State.FAILED}
    else:
        assert states.count(State.HELD) == (221 if end == "is unknown" else 220)
    assert scene.stats().balanced


def test_a_key_is_kept_until_all_that_follow_have_their_answer(scene: Scene) -> None:
    run = scene.start("a", BILL, of=DAYS)
    scene.admit(*[scene.call(f"f{number}", BILL, of=DAYS, position=number) for number in range(120)])
    scene.settle(run, 1)
    scene.store.advance(40 * DAY_MS)
    forget(scene, recovery.Retention(body_ms=50 * DAY_MS, tombstone_ms=1))
    assert submit(scene, "late", OTHER, of=DAYS).state is State.REFUSED
    follow(scene)
    assert scene.stats().counts["tool:succeeded:bill"] == 121


def test_large_results_are_copied_a_bounded_amount_at_a_time(scene: Scene) -> None:
    run = scene.start("a", BILL, of=ONCE)
    scene.admit(*[scene.call(f"f{number}", BILL, of=ONCE, position=number) for number in range(10)])
    scene.settle(run, "x" * 400_000)
    assert scene.stats().counts["tool:succeeded:bill"] == 1 + 3
    assert follow(scene) == 7


def test_the_answer_of_a_follower_is_the_same_when_a_script_comes_twice(scene: Scene) -> None:
    run = scene.start("a", BILL, of=ONCE)
    call = scene.call("b", BILL, of=ONCE)
    first, again = (scene.admit(call, request="one wish") for _ in range(2))
    assert first == again
    word = runs.settle(scene.space, run, Ending(State.FAILED, failure=NO_EFFECT))
    assert scene.run(word) == scene.run(word)
    assert len(scene.queued_jobs()) == 1
    said = scene.word()
    retry = operators.retry(scene.space, scene.seen(run.call), said)
    assert scene.run(retry) == scene.run(retry)


def test_a_follower_that_takes_the_key_waits_for_its_turn_in_its_lane(scene: Scene) -> None:
    scene.submit("x", of=spec("look", "read"), lanes=("lane",))
    run_first = submit(scene, "a").key
    follower = submit(scene, "b", lanes=("lane",)).key
    scene.cancel(run_first)
    assert (scene.state(follower), scene.record(follower).fields.reason) == (State.HELD, "order")
    scene.settle(scene.take(), 1)
    assert scene.take().call == follower


def test_a_follower_in_a_lane_lets_the_next_one_go_when_it_rests(scene: Scene) -> None:
    run = scene.start("a", BILL, of=ONCE)
    submit(scene, "b", lanes=("lane",))
    behind = scene.submit("x", lanes=("lane",))
    assert scene.state(behind) is State.HELD
    scene.settle(run, 1)
    assert scene.state(behind) is State.QUEUED


def test_a_follower_that_is_told_that_its_predecessor_failed_is_refused_and_follows_no_longer(scene: Scene) -> None:
    submit(scene, "a")
    other = scene.submit("x", of=spec("look", "read"))
    follower = submit(scene, "b", predecessors=(other,)).key
    scene.cancel(other)
    assert scene.state(follower) is State.REFUSED
    assert scene.state(scene.call("a").identity.key) is State.QUEUED


def test_a_follower_that_takes_the_key_is_asked_about_anew_where_its_tool_needs_approval(scene: Scene) -> None:
    first = submit(scene, "a", held="approval").key
    second = submit(scene, "b", held="approval").key
    assert scene.record(second).fields.reason == "duplicate"
    scene.deny(first)
    run = scene.take()
    assert (run.call, run.approved) == (second, False), "the worker asks before it enters the handler"


def test_a_broken_follower_stops_no_other(scene: Scene) -> None:
    run = scene.start("a", BILL, of=ONCE)
    second, third = submit(scene, "b").key, submit(scene, "c").key
    scene.store.redis.hdel(scene.space.record(second), "turn_key", "queue")
    scene.store.run(runs.settle(scene.space, run, Ending(State.SUCCEEDED, "1")))
    assert scene.state(third) is State.SUCCEEDED


def test_a_store_that_lost_writes_gives_no_key_on(scene: Scene) -> None:
    first = submit(scene, "a").key
    second = submit(scene, "b").key
    scene.store.redis.hset(f"{scene.space.root}flags", "went_back", scene.store.now)
    scene.cancel(first)
    assert scene.state(second) is State.FAILED
    assert outcome_of(scene, second).may_have_run


def test_after_a_rotation_the_retry_of_a_call_whose_time_is_over_meets_the_call_that_has_its_key(scene: Scene) -> None:
    old, both = Keyring.parse("the old key of all"), Keyring.parse("the new key of all,the old key of all")
    scene.admit(scene.call("a", BILL, of=DAYS, keyring=old))
    run = scene.take()
    follower = submit(scene, "b", of=DAYS, keyring=old).key
    scene.fail(run)
    scene.store.advance(30 * DAY_MS)
    third = submit(scene, "c", OTHER, of=DAYS, keyring=both)
    assert third.state is State.QUEUED
    assert [scene.retry(call) for call in (run.call, follower)] == ["taken", "taken"]
