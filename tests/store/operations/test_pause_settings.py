"""The setting of a pause: who, when, why; said twice it counts once; and what it can be about."""

from __future__ import annotations

import pytest

from tests.support.store.scene import Scene
from toolonce.store.model.controls import ControlKind, Setting
from toolonce.store.operations.controls import controls, pause, paused_queues, resume
from toolonce.store.operations.operators import Actor

ANN = Actor("ann@host", "the bank is down")


def test_a_pause_says_by_whom_since_when_and_why_until_it_is_over(scene: Scene) -> None:
    first = scene.run(pause(scene.space, "tool:pay", ANN))
    began = scene.store.now
    assert first == Setting("on", ANN.actor, began, ANN.reason, began)
    scene.store.advance(5_000)
    assert scene.run(pause(scene.space, "tool:pay", ANN)) == first
    again = scene.run(pause(scene.space, "tool:pay", Actor("bob", "still down")))
    assert again == Setting("on", "bob", began + 5_000, "still down", began)
    said = scene.store.run(controls(scene.space))
    assert said.people == {(ControlKind.PAUSE, "tool:pay"): again}
    assert said.pauses_of("pay", "acme", "default") == {"tool:pay": again}
    assert said.pauses_of("look", "acme", "default") == {}
    scene.store.advance(5_000)
    over = scene.run(resume(scene.space, "tool:pay", ANN))
    assert over == Setting("off", ANN.actor, began + 10_000, ANN.reason, began)
    scene.store.advance(5_000)
    assert scene.run(resume(scene.space, "tool:pay", Actor("bob", "me too"))) == over, "the first one stands"
    assert scene.store.run(controls(scene.space)).people == {}


def test_what_was_never_paused_can_be_resumed_and_leaves_nothing(scene: Scene) -> None:
    assert scene.run(resume(scene.space, "tool:pay", ANN)) is None
    assert not scene.store.redis.exists(scene.space.controls)


@pytest.mark.parametrize("target", ["pay", "tool:", "tool:*", "tenant:*", "queue:*", "scope:x", ""])
def test_a_pause_of_something_that_has_none_is_refused(scene: Scene, target: str) -> None:
    with pytest.raises(ValueError, match=r"a pause is for tool:NAME, queue:NAME, tenant:NAME$"):
        pause(scene.space, target, ANN)


def test_paused_queues_are_told_in_one_command(scene: Scene) -> None:
    scene.pause("queue:mail", "queue:billing", "tool:default")
    scene.resume("queue:billing")
    asked = paused_queues(scene.space, ["default", "mail", "billing"])
    assert scene.store.run(asked) == {"mail"}
    assert len(asked.commands) == 1
