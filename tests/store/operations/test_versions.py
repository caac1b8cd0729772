"""Calls and workers of different versions of a tool: who sets held calls going, and what a rolled-back deploy tells."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.store.scene import Scene, spec
from toolonce.store.model.states import State
from toolonce.store.operations.recovery import adopt
from toolonce.store.operations.tools import publish, published

OLD, NEW = spec("pay", version="1"), spec("pay", version="2", queue="billing")


def held_for_want_of_a_worker(scene: Scene, **more: Any) -> str:
    """A worker without the tool has taken the pointer first."""
    run = scene.start("a", of=OLD, **more)
    scene.release(run, held="no_worker")
    return run.call


@pytest.mark.parametrize(
    ("served", "goes_on"),
    [
        (("pay", "1", ()), True),
        (("pay", "2", ("*",)), True),
        (("pay", "2", ("0", "1")), True),
        (("pay", "2", ("0",)), False),
        (("pay", "2", ()), False),
        (("look", "1", ("*",)), False),
    ],
)
def test_a_worker_sets_going_what_it_serves_or_accepts(
    scene: Scene, served: tuple[str, str, tuple[str, ...]], goes_on: bool
) -> None:
    """G7: one that accepts the call is there and idle; it must not wait for its deadline."""
    call = held_for_want_of_a_worker(scene)
    others = ("other", "1", ("*",))
    adopted = scene.run(adopt(scene.space, [others, served, others], queues=("default",)))
    assert adopted.counts == {"adopted": int(goes_on)}
    assert scene.state(call) is (State.QUEUED if goes_on else State.HELD)


@pytest.mark.parametrize(
    ("queues", "keys", "goes_on"),
    [(("other", "default"), ("k0", "k1"), True), (("other",), ("k1",), False), (("default",), ("k0",), False)],
    ids=["both", "another queue", "another key"],
)
def test_a_worker_leaves_alone_what_it_could_not_take_or_open(
    scene: Scene, queues: tuple[str, ...], keys: tuple[str, ...], goes_on: bool
) -> None:
    """Set going all the same, a call would be taken and given back with every sweep."""
    call = held_for_want_of_a_worker(scene, secret=True, key_id="k1")
    adopted = scene.run(adopt(scene.space, [("pay", "1", ())], queues=queues, keys=keys))
    assert adopted.counts["adopted"] == int(goes_on)
    assert scene.state(call) is (State.QUEUED if goes_on else State.HELD)


def test_a_call_that_fits_no_accepted_schema_does_not_go_round_for_ever(scene: Scene) -> None:
    call = held_for_want_of_a_worker(scene)
    rounds = 0
    while scene.run(adopt(scene.space, [("pay", "2", ("*",))], queues=("default",))).counts["adopted"]:
        scene.release(scene.take(), held="no_worker")
        rounds += 1
        assert rounds < 100

    assert scene.run(adopt(scene.space, [("pay", "1", ())], queues=("default",))).counts["adopted"] == 1
    assert scene.state(call) is State.QUEUED


def test_a_deploy_that_is_rolled_back_is_noticed_by_those_who_keep_specs(scene: Scene) -> None:
    """The queue of the newer version has no workers any more; calls admitted for it would wait there in vain."""
    versions = [scene.run(publish(scene.space, [one]))[0] for one in (OLD, NEW, NEW, OLD)]

    assert len(set(versions)) == 3
    assert versions[1] == versions[2]
    assert scene.run(published(scene.space)).tools["pay"].queue == "default"
