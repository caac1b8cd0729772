"""Tools that hold duplicates: an equal call under another key waits for a person while the first is open."""

from __future__ import annotations

import pytest

from tests.support.store.scene import Scene, spec
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.states import State

ONCE = spec("pay", hold_duplicates=True)
BILL = {"order": "A-17"}


def submit_twice(scene: Scene) -> tuple[str, str]:
    return scene.submit("a", BILL, of=ONCE), scene.submit("b", BILL, of=ONCE)


@pytest.mark.parametrize("stage", ["queued", "running", "unknown"])
def test_an_equal_call_is_held_while_the_first_is_open_and_points_to_it(scene: Scene, stage: str) -> None:
    """O1-06: the model asks again under a new id while the first still runs."""
    first = scene.submit("a", BILL, of=ONCE)
    if stage != "queued":
        run = scene.take()
        if stage == "unknown":
            scene.lose(run)
    (outcome,) = scene.admit(scene.call("b", BILL, of=ONCE))
    assert (outcome.state, outcome.pending) == (State.HELD, True)
    assert (outcome.marks["reason"], outcome.marks["duplicate_of"]) == ("duplicate", first)


def test_a_person_lets_a_duplicate_run_or_refuses_it(scene: Scene) -> None:
    _, second = submit_twice(scene)
    third = scene.submit("c", BILL, of=ONCE)
    assert scene.approve(second) == "approved"
    assert scene.deny(third) == "denied"
    assert scene.states([second, third]) == [State.QUEUED, State.REFUSED]


def test_a_duplicate_that_nobody_decides_on_comes_to_rest(scene: Scene) -> None:
    _, second = submit_twice(scene)
    scene.store.advance(ONCE.approval_ms)
    scene.tick()
    assert scene.state(second) is State.EXPIRED


def test_after_the_first_is_settled_an_equal_call_runs(scene: Scene) -> None:
    """Build, fix, build: equal content under two keys is two calls."""
    scene.submit("a", BILL, of=ONCE)
    scene.settle(scene.take(), 1)
    assert scene.state(scene.submit("b", BILL, of=ONCE)) is State.QUEUED
    assert scene.state(scene.submit("c", BILL, of=ONCE)) is State.HELD


def test_other_arguments_other_scopes_and_other_tools_are_no_duplicates(scene: Scene) -> None:
    scene.submit("a", BILL, of=ONCE)
    others = [
        scene.submit("b", {"order": "A-18"}, of=ONCE),
        scene.submit("a", BILL, of=ONCE, scope="other"),
        scene.submit("c", BILL, of=spec("look", "read", hold_duplicates=True)),
    ]
    assert set(scene.states(others)) == {State.QUEUED}


def test_a_tool_that_does_not_ask_for_it_holds_nothing(scene: Scene) -> None:
    assert set(scene.states([scene.submit(name, BILL) for name in "ab"])) == {State.QUEUED}


def test_nothing_is_left_of_duplicates_that_are_settled(scene: Scene) -> None:
    _, second = submit_twice(scene)
    scene.approve(second)
    for _ in range(2):
        scene.settle(scene.take(), 1)
    assert not list(scene.store.redis.scan_iter(f"{scene.space.root}unique:*"))


def test_an_equal_call_is_held_also_while_only_a_held_duplicate_is_open(scene: Scene) -> None:
    first, second = submit_twice(scene)
    scene.settle(scene.take(), 1)
    (third,) = scene.admit(scene.call("c", BILL, of=ONCE))
    assert (third.state, third.marks["duplicate_of"]) == (State.HELD, second)

    scene.cancel(second)
    scene.cancel(third.key)
    assert scene.state(first) is State.SUCCEEDED
    assert scene.state(scene.submit("d", BILL, of=ONCE)) is State.QUEUED


def test_a_retried_call_is_open_again_to_its_duplicates(scene: Scene) -> None:
    run = scene.start("a", BILL, of=ONCE)
    scene.fail(run)
    scene.retry(run.call)
    assert scene.state(scene.submit("b", BILL, of=ONCE)) is State.HELD


def test_who_is_asked_for_approval_is_told_of_the_equal_call(scene: Scene) -> None:
    first = scene.submit("a", BILL, of=ONCE)
    (second,) = scene.admit(scene.call("b", BILL, of=ONCE, held="approval"))
    assert (second.marks["reason"], second.marks["duplicate_of"]) == ("approval", first)


def test_duplicates_find_each_other_across_a_rotation_of_keys(scene: Scene) -> None:
    first = scene.call("a", BILL, of=ONCE, keyring=Keyring.parse("the old key of all"))
    scene.admit(first)
    both = Keyring.parse("the new key of all,the old key of all")
    (outcome,) = scene.admit(scene.call("b", BILL, of=ONCE, keyring=both))
    assert outcome.marks["duplicate_of"] == first.identity.key
