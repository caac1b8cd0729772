"""What one bad item in the store, or another program beside us, does to commands that look at many: nothing."""

from __future__ import annotations

from tests.support.processes.command_line import CommandLine
from tests.support.store.live_store import LiveScene


def test_an_event_that_cannot_be_read_ends_no_tail(scene: LiveScene, toolonce: CommandLine) -> None:
    """faults 11: a sibling."""
    scene.succeeded("a")
    for event in ("{", "[]", '{"op": "settle"}', b"\xff"):
        scene.live.redis.xadd(scene.space.events, {"call": "x", "event": event})
    scene.live.redis.xadd(scene.space.events, {"strange": "1"})
    last = scene.succeeded("b")
    said = toolonce("tail", "--last", "50", "--for", "0s")
    assert said.code == 0
    assert said.out.count("unreadable") == 5
    assert last[:12] in said.out


def test_names_of_any_bytes_in_the_list_of_inboxes_end_no_doctor(scene: LiveScene, toolonce: CommandLine) -> None:
    """faults 13: a sibling."""
    scene.live.redis.sadd(scene.space.inboxes, b"\xff", *(f"x{number}" for number in range(1000)))
    assert toolonce("doctor", "--json").json


def test_a_worker_of_another_program_that_registers_otherwise_ends_no_list(
    scene: LiveScene, toolonce: CommandLine
) -> None:
    """faults 11: a sibling; RQ's list of workers may name those of other programs."""
    key = scene.space.rq_worker("other")
    scene.live.redis.hset(key, mapping={"pid": "none", "last_heartbeat": "yesterday"})
    scene.live.redis.sadd(scene.space.rq_workers, key)
    try:
        assert toolonce("workers", "--json").code == 0
    finally:
        scene.live.redis.srem(scene.space.rq_workers, key)
        scene.live.redis.delete(key)
