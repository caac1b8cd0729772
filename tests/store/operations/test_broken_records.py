"""A record that is gone or broken, as a person's DEL or a bad restore leaves it, stops nobody else's calls (G7)."""

from __future__ import annotations

import pytest

from tests.support.store.scene import LEASE_MS, Scene, spec
from toolonce.store.model.states import State
from toolonce.store.operations.recovery import reclaim, tick
from toolonce.store.operations.tools import publish

READ = spec("look", "read", deadline_ms=1000)


@pytest.fixture
def scene(scene: Scene) -> Scene:
    return Scene(scene.store, audited=False)  # the audit finds the broken record


def spoil(scene: Scene, call: str, how: str) -> None:
    record = f"{scene.space.root}call:{call}"
    if how == "gone":
        scene.store.redis.delete(record)
    else:
        scene.store.redis.hdel(record, "queue", "fp")


@pytest.mark.parametrize("how", ["gone", "broken"])
def test_a_lease_of_a_call_that_cannot_be_mended_keeps_no_other_from_being_reclaimed(scene: Scene, how: str) -> None:
    """faults 11: a sibling, in recovery."""
    first, second = scene.start("a", of=READ), scene.start("b", of=READ)
    spoil(scene, first.call, how)
    scene.store.advance(LEASE_MS + 1)
    for _ in range(2):
        scene.run(reclaim(scene.space, "sweeper"))
    assert scene.state(second.call) is not State.RUNNING
    left = scene.store.redis.zrange(f"{scene.space.root}leases", 0, -1)
    assert left == ([] if how == "gone" else [first.call])


@pytest.mark.parametrize("how", ["gone", "broken"])
@pytest.mark.parametrize("index", ["deadlines", "approvals", "delayed"])
def test_what_is_due_for_a_call_that_cannot_be_mended_keeps_no_other_waiting(
    scene: Scene, how: str, index: str
) -> None:
    """faults 11: a sibling, in recovery."""
    held = "approval" if index == "approvals" else ""
    calls = [scene.submit(name, of=READ, held=held) for name in "ab"]
    if index == "delayed":
        for _ in calls:
            scene.retry_later(scene.take(), delay_ms=500)
    spoil(scene, calls[0], how)
    scene.store.advance(800 if index == "delayed" else 100 * 86_400_000)
    for _ in range(2):
        scene.run(tick(scene.space))
    if index == "delayed":
        assert [job[:32] for job in scene.queued_jobs()] == calls[1:]
    else:
        assert scene.state(calls[1]) is State.EXPIRED


def test_a_held_call_whose_record_is_gone_keeps_no_worker_from_publishing_its_tools(scene: Scene) -> None:
    """faults 11: a sibling, at a worker's start."""
    calls = [scene.submit(name, of=READ, held="no_worker") for name in "ab"]
    spoil(scene, calls[0], "gone")
    scene.run(publish(scene.space, [READ]))
    assert scene.state(calls[1]) is State.QUEUED
    assert not scene.store.redis.exists(f"{scene.space.root}call:{calls[0]}")


def test_a_call_that_waits_for_a_slot_and_whose_record_is_gone_passes_the_slot_on(scene: Scene) -> None:
    """faults 11: a sibling, in limits."""
    scene.limit("tool:look", 1)
    running = scene.start("a", of=READ)
    waiting = [scene.submit(name, of=READ) for name in "bc"]
    for _ in waiting:
        job = scene.pop()
        assert job
        scene.claim(job)
    spoil(scene, waiting[0], "gone")
    scene.settle(running)
    scene.run(tick(scene.space))
    assert [job[:32] for job in scene.queued_jobs()] == waiting[1:]
