"""What people say about which calls may run: it wins over the code's word, and is counted from the first moment."""

from __future__ import annotations

import pytest

from tests.support.store.scene import Scene, spec
from toolonce.store.model.controls import ControlKind, Controls, Setting
from toolonce.store.operations.controls import Use, control, controls, limit, uses
from toolonce.store.operations.operators import Actor
from toolonce.store.operations.runs import NotRun, Run
from toolonce.store.operations.tools import publish

ANN = Actor("ann@host", "the bank asks for it")


def started(scene: Scene, *names: str, tenant: str = "") -> list[bool]:
    """Submit these calls and claim each once; which of them run."""
    for name in names:
        scene.submit(name, tenant=tenant)
    jobs = [scene.pop() for _ in names]
    return [isinstance(scene.claim(job), Run) for job in jobs if job]


@pytest.mark.parametrize(("code", "people"), [(1, 3), (3, 1)])
def test_the_word_of_people_wins_over_the_code_in_both_directions(scene: Scene, code: int, people: int) -> None:
    scene.run(publish(scene.space, [spec("pay", concurrency=code)]))
    scene.limit("tool:pay", people)
    assert started(scene, *"abcd") == [True] * people + [False] * (4 - people)


def test_the_word_of_people_outlasts_each_deployment_until_it_is_cleared(scene: Scene) -> None:
    scene.limit("tool:pay", 1)
    for concurrency in (3, 2, None, 2):
        scene.run(publish(scene.space, [spec("pay", concurrency=concurrency)]))
    assert started(scene, *"abc") == [True, False, False]
    scene.limit("tool:pay", None)
    assert started(scene, *"de") == [True, False]


@pytest.mark.parametrize("target", ["tool:pay", "tenant:acme", "tenant:*"])
def test_calls_that_run_already_count_under_a_new_limit(scene: Scene, target: str) -> None:
    running = [scene.start(name, tenant="acme") for name in "abc"]
    scene.limit(target, 2)
    assert started(scene, "d", tenant="acme") == [False]
    scene.settle(running[0])
    assert started(scene, "e", tenant="acme") == [False]
    scene.settle(running[1])
    assert isinstance(scene.take(), Run)


def test_calls_that_run_already_count_under_a_limit_that_a_deployment_brings(scene: Scene) -> None:
    scene.run(publish(scene.space, [spec("pay")]))
    scene.start("a")
    scene.run(publish(scene.space, [spec("pay", concurrency=1)]))
    assert started(scene, "b") == [False]


def test_a_limit_that_was_away_for_a_while_counts_all_that_run_when_it_is_back(scene: Scene) -> None:
    scene.limit("tool:pay", 2)
    first = scene.start("a")
    scene.limit("tool:pay", None)
    scene.start("b")
    scene.settle(first)
    scene.start("c")
    scene.limit("tool:pay", 2)
    assert started(scene, "d") == [False]


def test_a_lowered_limit_stops_no_running_call_and_a_raised_one_lets_in_as_many_as_it_says(scene: Scene) -> None:
    scene.limit("tool:pay", 3)
    running = [scene.start(name) for name in "abc"]
    scene.limit("tool:pay", 1)
    assert started(scene, *"def") == [False, False, False]
    for run in running[:2]:
        scene.settle(run)
        assert scene.claim(scene.pop() or "") == NotRun("parked", "tool:pay")
    scene.limit("tool:pay", 3)
    assert [isinstance(scene.claim(job), Run) for job in scene.queued_jobs()] == [True, True]


def test_a_setting_that_comes_twice_stands_as_it_came_first(scene: Scene) -> None:
    first = scene.run(limit(scene.space, "tool:pay", 5, ANN))
    assert first
    scene.store.advance(5_000)
    assert scene.run(limit(scene.space, "tool:pay", 5, ANN)) == first
    assert first == Setting("5", ANN.actor, first.at, ANN.reason)
    changed = scene.run(limit(scene.space, "tool:pay", 5, Actor("bob", "mine now")))
    assert changed
    assert (changed.by, changed.at - first.at) == ("bob", 5_000)
    assert scene.run(limit(scene.space, "tool:pay", None, ANN)) is None
    assert scene.run(limit(scene.space, "tool:pay", None, ANN)) is None


def test_all_settings_are_told_with_both_words_and_their_use(scene: Scene) -> None:
    scene.run(publish(scene.space, [spec("pay", concurrency=7), spec("look", "read", concurrency=2)]))
    scene.limit("tenant:*", 4)
    told = scene.run(limit(scene.space, "tool:pay", 1, ANN))
    assert started(scene, *"abc") == [True, False, False]
    said = scene.run(controls(scene.space))
    assert said.people[ControlKind.LIMIT, "tool:pay"] == told
    assert said.code == {(ControlKind.LIMIT, "tool:pay"): "7", (ControlKind.LIMIT, "tool:look"): "2"}
    assert said.targets(ControlKind.LIMIT) == ("tenant:*", "tool:look", "tool:pay")
    in_force = [
        said.in_force(ControlKind.LIMIT, target) for target in ("tool:pay", "tool:look", "tenant:acme", "tool:else")
    ]
    assert in_force == ["1", "2", "4", None]
    assert scene.run(uses(scene.space, ["tool:pay", "tool:look"])) == {"tool:pay": Use(1, 2), "tool:look": Use(0, 0)}


@pytest.mark.parametrize("target", ["pay", "tool:", "tool:*", "queue:mail", "tenant:", ""])
def test_a_limit_of_something_that_has_none_is_refused(scene: Scene, target: str) -> None:
    with pytest.raises(ValueError, match="a limit is for tool:NAME, tenant:NAME, or"):
        limit(scene.space, target, 1, ANN)


def test_names_with_spaces_are_kept_and_a_value_has_none(scene: Scene) -> None:
    scene.run(limit(scene.space, "tenant:acme and sons", 3, ANN))
    assert scene.run(controls(scene.space)).in_force(ControlKind.LIMIT, "tenant:acme and sons") == "3"
    with pytest.raises(ValueError, match="one word"):
        control(scene.space, ControlKind.LIMIT, "tool:pay", "5 or 6", ANN)


def test_settings_that_a_later_release_knows_are_passed_over() -> None:
    stored = {"colour tool:pay": "red {}", "code colour tool:pay": "red", "uncounted": "1"}
    assert Controls.from_stored(stored) == Controls()
