"""What pauses cost the server: the same few commands however many calls are parked, and none for calls of others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.store.clocked_store import ClockedStore
from tests.support.store.scene import LEASE_MS, Scene
from toolonce.store.operations import recovery, runs
from toolonce.store.operations.controls import pause, resume
from toolonce.store.operations.operation import Operation
from toolonce.store.operations.operators import Actor
from toolonce.store.operations.runs import NotRun

ANN = Actor("ann@host", "the bank is down")


def scene_with_parked(store: ClockedStore, number: int) -> Scene:
    """So many calls of a paused tool."""
    scene = Scene(store, audited=False)
    scene.pause("tool:pay")
    for n in range(number):
        scene.submit(f"call-{n}")
    while (job := scene.pop()) is not None:
        assert scene.claim(job) == NotRun("parked", "pause tool:pay")
    return scene


def commands_of(scene: Scene, operation: Operation[Any]) -> int:
    """How many commands the server has executed for it, those inside its script counted one by one."""
    scene.store.redis.config_resetstat()
    scene.store.run(operation)
    told = scene.store.redis.info("commandstats")
    return sum(one["calls"] for name, one in told.items() if not name.startswith(("cmdstat_config", "cmdstat_info")))


@pytest.mark.parametrize("parked", [3, 400])
def test_pause_and_resume_take_the_same_few_commands_however_many_calls_are_parked(
    real_store: ClockedStore, parked: int
) -> None:
    scene = scene_with_parked(real_store, parked)
    steps = [pause(scene.space, "tool:pay", Actor("bob")), resume(scene.space, "tool:pay", ANN)]
    for step in steps:
        scene.store.run(step)  # so that the server knows the script
    scene.store.run(pause(scene.space, "tool:pay", ANN))
    assert [commands_of(scene, step) for step in steps] == [5, 7]


def test_each_step_of_coming_back_takes_as_many_commands_as_the_one_before(real_store: ClockedStore) -> None:
    scene = scene_with_parked(real_store, 60)
    scene.store.run(resume(scene.space, "tool:pay", ANN))
    costs = [commands_of(scene, recovery.tick(scene.space, most=10)) for _ in range(5)]
    assert max(costs[1:]) == min(costs[1:])
    assert costs[1] < 10 * 20


def test_a_claim_pays_no_command_for_pauses(real_store: ClockedStore) -> None:
    """The pauses of others: the same commands as before there was any, where people have set anything."""
    scene = Scene(real_store, audited=False)
    scene.limit("tool:other", 5)
    costs = []
    for name in "abc":
        scene.submit(name)
        delivery = scene.delivery(scene.pop() or "")
        costs.append(commands_of(scene, runs.claim(scene.space, delivery, lease_ms=LEASE_MS)))
        scene.pause("tool:look", "tenant:acme", "queue:mail")
    assert costs[1] == costs[2] <= costs[0]
    claim = scene.store.redis.info("commandstats")
    assert claim["cmdstat_hmget"]["calls"] <= 2, "the record, and all settings at once"
