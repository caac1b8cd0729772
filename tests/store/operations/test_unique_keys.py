"""Calls that share a unique key: one has it, equal ones follow it, others are refused; and when it is free again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.store.scene import BROKEN, LEASE_MS, Scene, spec
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.outcomes import Failure, Outcome
from toolonce.store.model.specs import ToolSpec
from toolonce.store.model.states import SETTLED, Operation, State
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


# What a call meets.


@pytest.mark.parametrize("stage", ["queued", "running"])
def test_an_equal_call_follows_the_first_and_gets_its_result_marked_replayed(scene: Scene, stage: str) -> None:
    first = submit(scene, "a")
    run = scene.take() if stage == "running" else None
    second = submit(scene, "b")
    assert (second.state, second.pending) == (State.HELD, True)
    assert (second.marks["reason"], second.marks["follows"]) == ("duplicate", first.key)

    scene.settle(run or scene.take(), {"id": 7})

    told = outcome_of(scene, second.key)
    assert (told.state, told.value, told.replayed, told.attempt) == (State.SUCCEEDED, {"id": 7}, True, 0)
    assert told.marks["follows"] == first.key
    assert not scene.queued_jobs()


def test_an_equal_call_that_comes_after_the_first_has_succeeded_rests_at_once(scene: Scene) -> None:
    scene.settle(scene.start("a", BILL, of=ONCE), 1)
    second = submit(scene, "b")
    assert (second.state, second.value, second.replayed) == (State.SUCCEEDED, 1, True)
    assert [line["op"] for line in scene.record(second.key).history] == ["admit", "follow"]


def test_a_call_with_other_arguments_is_refused_and_told_what_became_of_the_first(scene: Scene) -> None:
    run = scene.start("a", BILL, of=ONCE)
    second = submit(scene, "b", OTHER)
    assert second.state is State.REFUSED
    assert second.failure
    assert second.failure.code == "unique_taken"
    first = second.failure.details["first"]
    assert (first["call"], first["id"], first["turn"], first["state"]) == (run.call, "a", "turn", "running")
    scene.fail(run)
    third = submit(scene, "c", OTHER)
    assert third.failure
    assert third.failure.details["first"]["error"]["message"] == BROKEN.message
    assert third.failure.details["unique_by"] == "order"
    assert outcome_of(scene, second.key).failure == second.failure


def test_a_refusal_tells_of_a_first_call_that_nobody_has_tried_yet(scene: Scene) -> None:
    first = submit(scene, "a")
    refused = submit(scene, "b", OTHER).failure
    assert refused
    told = refused.details["first"]
    assert (told["call"], told["state"], told["attempt"]) == (first.key, "queued", 0)


def test_other_values_other_scopes_and_other_tools_share_no_key(scene: Scene) -> None:
    submit(scene, "a")
    others = [
        submit(scene, "b", {"order": "A-18", "cents": 5}),
        scene.admit(scene.call("a", BILL, of=ONCE, scope="other"), turn=scene.turn(scope="other"))[0],
        submit(scene, "c", of=spec("look", "read", unique_by=("order",))),
        submit(scene, "d", {"order": 17, "cents": 5}),
        submit(scene, "e", {"order": "17", "cents": 5}),
    ]
    assert {outcome.state for outcome in others} == {State.QUEUED}


def test_a_key_of_the_tenant_is_shared_by_its_scopes(scene: Scene) -> None:
    shared = spec("bill", unique_by=("order",), unique_in="tenant")
    first = scene.submit("a", BILL, of=shared, scope="acme/1", tenant="acme")
    same = scene.submit("a", BILL, of=shared, scope="acme/2", tenant="acme")
    other = scene.submit("a", BILL, of=shared, scope="umbrella/1", tenant="umbrella")
    assert scene.states([first, same, other]) == [State.QUEUED, State.HELD, State.QUEUED]


def test_an_equal_call_of_the_same_submission_follows_too(scene: Scene) -> None:
    calls = [scene.call(name, BILL, of=ONCE) for name in "abc"]
    outcomes = scene.admit(*calls)
    assert [outcome.state for outcome in outcomes] == [State.QUEUED, State.HELD, State.HELD]
    assert {outcome.marks["follows"] for outcome in outcomes[1:]} == {outcomes[0].key}


def test_keys_are_compared_across_a_rotation(scene: Scene) -> None:
    old, both = Keyring.parse("the old key of all"), Keyring.parse("the new key of all,the old key of all")
    first = submit(scene, "a", keyring=old)
    assert submit(scene, "b", keyring=both).marks["follows"] == first.key
    fail_without_effect(scene, scene.take())
    scene.cancel(submit(scene, "b", keyring=both).key)
    third = submit(scene, "c", OTHER, keyring=both)
    assert third.state is State.QUEUED
    assert scene.retry(first.key) == "taken", "the first has given it up, and the third has it, whatever the newest key"


# How the first ends.


def test_a_first_call_that_fails_without_effect_lets_the_oldest_follower_run_and_the_others_follow_that(
    scene: Scene,
) -> None:
    run = scene.start("a", BILL, of=ONCE)
    second, third = submit(scene, "b").key, submit(scene, "c").key
    fail_without_effect(scene, run)

    again = scene.take()
    assert again.call == second
    assert outcome_of(scene, third).marks["follows"] == second
    assert "follows" not in scene.record(second).fields.values
    scene.settle(again, "sent")
    assert outcome_of(scene, third).value == "sent"
    assert not outcome_of(scene, second).replayed


def test_a_first_call_that_fails_with_a_possible_effect_gives_its_words_to_its_followers(scene: Scene) -> None:
    run = scene.start("a", BILL, of=ONCE)
    second = submit(scene, "b").key
    scene.fail(run)
    third = submit(scene, "c")
    for told in (outcome_of(scene, second), third):
        assert (told.state, told.replayed, told.nothing_ran) == (State.FAILED, True, False)
        assert told.failure
        assert (told.failure.code, told.failure.message) == (BROKEN.code, BROKEN.message)


def test_followers_of_an_unknown_call_wait_without_being_pending_until_it_is_settled(scene: Scene) -> None:
    """G3: nobody guesses, also not about those that follow."""
    run = scene.start("a", BILL, of=ONCE)
    second = submit(scene, "b").key
    assert scene.lose(run) is State.UNKNOWN
    third = submit(scene, "c").key
    for follower in (second, third):
        told = outcome_of(scene, follower)
        assert (told.state, told.marks["first_state"], told.pending) == (State.HELD, "unknown", False)
    scene.store.advance(1_000 * DAY_MS)
    scene.tick()
    assert scene.states([second, third]) == [State.HELD, State.HELD]

    scene.resolve(run.call, '"paid"')
    assert [outcome_of(scene, follower).value for follower in (second, third)] == ["paid", "paid"]


def test_followers_of_an_unknown_call_that_runs_again_are_pending_again(scene: Scene) -> None:
    run = scene.start("a", BILL, of=ONCE)
    second = submit(scene, "b").key
    scene.lose(run)
    assert scene.retry(run.call) == "queued"
    told = outcome_of(scene, second)
    assert (told.pending, "first_state" in told.marks) == (True, False)
    scene.settle(scene.take(), 1)
    assert scene.state(second) is State.SUCCEEDED


@pytest.mark.parametrize("how", ["cancel", "deny", "expire", "not_started", "refuse"])
def test_a_first_call_that_ends_before_it_has_run_gives_the_key_on(scene: Scene, how: str) -> None:
    first = submit(scene, "a", held="approval" if how == "deny" else "").key
    second = submit(scene, "b").key
    if how == "cancel":
        scene.cancel(first)
    elif how == "deny":
        scene.deny(first)
    elif how == "expire":
        scene.store.advance(ONCE.deadline_ms)
        scene.tick()
    elif how == "not_started":
        again = runs.retry_not_started(scene.space, scene.take(), delay_ms=1_000, failure=BROKEN)
        scene.run(again)
        scene.cancel(first)
    else:
        scene.run(runs.settle(scene.space, scene.take(), Ending(State.REFUSED, failure=Failure("denied", "no"))))
    assert scene.state(first).is_settled
    assert scene.state(second) is State.QUEUED
    assert scene.take().call == second


@pytest.mark.parametrize("word", ["operator", "reconcile", "purged"])
def test_who_says_that_it_did_not_happen_gives_the_key_on_and_who_gives_up_asking_does_not(
    scene: Scene, word: str
) -> None:
    run = scene.start("a", BILL, of=ONCE)
    second = submit(scene, "b").key
    scene.lose(run)
    failure = Failure(word, "it did not")
    operation = Operation.RECONCILE if word == "reconcile" else Operation.RESOLVE
    scene.run(operators.resolve(scene.space, scene.seen(run.call), failure, scene.word(), operation=operation))
    assert scene.state(second) is (State.FAILED if word == "purged" else State.QUEUED)


def test_a_call_that_is_queued_again_keeps_its_key(scene: Scene) -> None:
    look = spec("bill", "idempotent", unique_by=("order",))
    run = scene.start("a", BILL, of=look)
    second = submit(scene, "b", of=look).key
    scene.retry_later(run)
    assert submit(scene, "c", OTHER, of=look).state is State.REFUSED
    scene.store.advance(1_000)
    scene.tick()
    run = scene.take()
    scene.store.advance(LEASE_MS + 1)
    scene.reclaim()
    assert scene.state(run.call) is State.QUEUED
    assert scene.state(second) is State.HELD
    scene.cancel(run.call)  # an attempt of it may have had its effect
    told = outcome_of(scene, second)
    assert told.failure
    assert (told.state, told.failure.code, told.nothing_ran) == (State.FAILED, "cancelled", False)


def test_a_retried_call_does_not_give_its_key_on_for_an_attempt_without_effect(scene: Scene) -> None:
    """The attempt before may have had its effect, whatever this one says; a tool's word is about its own attempt."""
    run = scene.start("a", BILL, of=ONCE)
    scene.lose(run)
    scene.retry(run.call)
    second = submit(scene, "b").key
    scene.run(runs.settle(scene.space, scene.take(), Ending(State.FAILED, failure=Failure("no_account", "no"))))
    assert scene.state(second) is State.FAILED
