"""Ways to make a server or a store sick, one for each finding of the doctor: code -> what to do to it.

Everything here is done to a real server. What cannot be had on one machine (an old server, a full disk, a slow
network) is written into a reading of a real one instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec
from toolonce.ops.health.health_snapshot import HealthSnapshot
from toolonce.store.connections.replication import note_replicas
from toolonce.store.operations.controls import limit, pause
from toolonce.store.operations.operators import Actor
from toolonce.store.operations.recovery import reconcile_later
from toolonce.worker.runtime.worker_status import FIELD, LISTED_S, Report

Sickness = Callable[[LiveScene], object]
Rewriting = Callable[[HealthSnapshot], HealthSnapshot]


def config(name: str, value: str) -> Sickness:
    return lambda scene: scene.live.redis.config_set(name, value)


def flag(name: str) -> Sickness:
    return lambda scene: scene.live.redis.hset(f"{scene.space.root}flags", name, "1")


def clock_back(scene: LiveScene) -> None:
    """The clock was an hour further when a sweep last looked."""
    scene.live.redis.hset(f"{scene.space.root}marks", "clock", str(int(time.time() * 1000) + 3_600_000))
    scene.reclaim()


def full_memory(scene: LiveScene) -> None:
    used = int(scene.live.redis.info("memory")["used_memory"])
    scene.live.redis.config_set("maxmemory", str(round(used / 0.8)))


def replica(scene: LiveScene) -> None:
    scene.live.connection.command("REPLICAOF", "127.0.0.1", "1")


def user_without(rules: str) -> Sickness:
    def bar(scene: LiveScene) -> None:
        scene.live.connection.command("ACL", "SETUSER", "default", *rules.split())

    return bar


def unbalanced(scene: LiveScene) -> None:
    scene.succeeded("a")
    scene.live.redis.hincrby(f"{scene.space.root}counts", "admitted", 1)


def unknown(scene: LiveScene) -> None:
    scene.unknown("a")


def reconcile_that_fails(scene: LiveScene) -> None:
    call = scene.unknown("a").call
    for _ in range(3):
        scene.live.redis.hincrby(f"{scene.space.root}call:{call}", "asked", 1)
    scene.run(reconcile_later(scene.space, call, wait_ms=1_000, heard="TimeoutError: the bank is closed"))


def held_behind_doubt(scene: LiveScene) -> None:
    scene.unknown("a", lanes=("l",))
    scene.submit("b", lanes=("l",))


def late_lease(scene: LiveScene) -> None:
    run = scene.start("a")
    scene.live.redis.zadd(f"{scene.space.root}leases", {run.call: 1})


def waiting(scene: LiveScene) -> None:
    scene.submit("a")


def old_waiting(scene: LiveScene) -> None:
    key = scene.submit("a")
    worker(scene, "w")
    scene.live.redis.zadd(f"{scene.space.root}in:queued", {key: 1})


def inbox(scene: LiveScene) -> None:
    scene.live.redis.sadd(scene.space.inboxes, "acme")
    for number in range(101):
        scene.live.redis.xadd(scene.space.inbox("acme"), {"turn": str(number)})


def unused(scene: LiveScene) -> None:
    """A namespace is so at first."""


def tools_without_worker(scene: LiveScene) -> None:
    scene.publish(spec("pay"))


def worker(scene: LiveScene, name: str, **report: Any) -> None:
    """A worker as it registers itself."""
    told = {"namespace": scene.space.name, "state": "working", "slots": 1, "busy": 0} | dict.fromkeys(
        ("succeeded", "failed", "retried", "interrupted", "given_back", "refused_jobs", "abandoned"), 0
    )
    whole = Report(**(told | {"version": "1"} | report))  # type: ignore[arg-type]
    heard = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    key, queue = scene.space.rq_worker(name), scene.space.queue_name("default")
    scene.live.redis.hset(key, mapping={"queues": queue, "last_heartbeat": heard, FIELD: whole.to_json()})
    scene.live.redis.sadd(scene.space.rq_workers, key)


def silent(scene: LiveScene) -> None:
    worker(scene, "w", beat_s=5)
    scene.live.redis.expire(scene.space.rq_worker("w"), LISTED_S - 16)


def without_worker(scene: LiveScene) -> None:
    scene.publish(spec("pay"))
    worker(scene, "w")
    scene.release(scene.start("a"), held="no_worker")


def drifted(scene: LiveScene) -> None:
    worker(scene, "old", specs={"pay": "aaa"})
    worker(scene, "new", specs={"pay": "bbb"})


def mixed(scene: LiveScene) -> None:
    worker(scene, "old", version="1")
    worker(scene, "new", version="2")


def put_aside(scene: LiveScene) -> None:
    scene.live.redis.xadd(f"{scene.space.root}quarantine", {"inbox": "i", "entry": "1-1", "reason": "no JSON"})


def limited_by_a_person(scene: LiveScene) -> None:
    scene.publish(spec("pay", concurrency=5))
    scene.run(limit(scene.space, "tool:pay", 2, Actor("ann", "the bank asks")))


def limit_of_no_tool(scene: LiveScene) -> None:
    scene.publish(spec("pay"))
    scene.run(limit(scene.space, "tool:pya", 2, Actor("ann")))


def paused_by_a_person(scene: LiveScene) -> None:
    scene.publish(spec("pay"))
    scene.run(pause(scene.space, "tool:pay", Actor("ann", "the bank is down")))


def pause_of_no_tool(scene: LiveScene) -> None:
    scene.publish(spec("pay"))
    scene.run(pause(scene.space, "tool:pya", Actor("ann")))


def unreadable_spec(scene: LiveScene) -> None:
    scene.live.redis.hset(f"{scene.space.root}tools", "later\n1", '{"name": "later", "effect": "new"}')
    scene.live.redis.hset(f"{scene.space.root}newest", "later", "1")


def short_grace(scene: LiveScene) -> None:
    scene.publish(spec("pay", timeout_ms=60_000))
    worker(scene, "w", grace_s=5)


def secret_tool(scene: LiveScene) -> None:
    scene.publish(spec("pay", secret=("token",)))


def long_deadline(scene: LiveScene) -> None:
    scene.publish(spec("pay", deadline_ms=30 * 86_400_000))


def info(name: str, value: str) -> Rewriting:
    return lambda snapshot: replace(snapshot, info={**snapshot.info, name: value})


def replicas(behind: int) -> Rewriting:
    line = f"ip=replica.example.org,port=6379,state=online,offset={10_000_000 - behind},lag=1"
    told = {"role": "master", "connected_slaves": "1", "slave0": line, "master_repl_offset": "10000000"}
    return lambda snapshot: replace(snapshot, info={**snapshot.info, **told})


def replicas_and_worker(**report: Any) -> Sickness:
    """Two replicas were seen once, and a worker lives that was started so."""

    def seen(scene: LiveScene) -> None:
        scene.live.run(note_replicas(scene.space, 2))
        worker(scene, "w", **report)

    return seen


ON_A_SERVER: dict[str, Sickness] = {
    "no_aof": config("appendonly", "no"),
    "no_fsync": config("appendfsync", "everysec"),
    "evicts": config("maxmemory-policy", "allkeys-lru"),
    "config_barred": user_without("-config"),
    "barred": user_without("-@scripting"),
    "little_memory": full_memory,
    "no_memory_limit": lambda scene: None,
    "loose_records": config("hash-max-listpack-value", "64"),
    "replica": replica,
    "unbalanced": unbalanced,
    "went_back": flag("went_back"),
    "clock_went_back": clock_back,
    "full": flag("full"),
    "unknown": unknown,
    "reconcile_fails": reconcile_that_fails,
    "held_behind_doubt": held_behind_doubt,
    "late_leases": late_lease,
    "unserved_queue": waiting,
    "slow_queue": old_waiting,
    "inbox_stuck": inbox,
    "quarantined": put_aside,
    "unreadable_spec": unreadable_spec,
    "set_by_people": limited_by_a_person,
    "set_for_no_tool": limit_of_no_tool,
    "paused": paused_by_a_person,
    "paused_no_tool": pause_of_no_tool,
    "no_worker": tools_without_worker,
    "no_tools": unused,
    "silent_worker": silent,
    "held_no_worker": without_worker,
    "spec_drift": drifted,
    "mixed_releases": mixed,
    "short_grace": short_grace,
    "no_replicas_required": replicas_and_worker(replicas="0"),
    "few_replicas_required": replicas_and_worker(replicas="1"),
    "replicas_missing": replicas_and_worker(replicas="all", lacks_replicas=True),
    "no_keys": secret_tool,
    "short_retention": long_deadline,
}
IN_A_READING: dict[str, Rewriting] = {
    "old_server": info("valkey_version", "6.2.1"),
    "disk_full": info("aof_last_write_status", "err"),
    "cluster": info("cluster_enabled", "1"),
    "untried_rq": lambda snapshot: replace(snapshot, rq="3.1.0"),
    "loose_replication": replicas(behind=0),
    "clocks_differ": lambda snapshot: replace(snapshot, clocks={"replica.example.org:6379": -1_500}),
    "replica_lag": replicas(behind=2_000_000),
    "slow_server": lambda snapshot: replace(snapshot, latency_ms=(9.0,) * 20),
    "no_tls": lambda snapshot: replace(snapshot, url="redis://redis.example.org:6379/0"),
    "default_user": lambda snapshot: replace(snapshot, url="redis://localhost/0"),
    "deep_queue": lambda snapshot: with_queue(snapshot, 60_000),
    "clock_went_back": lambda snapshot: replace(snapshot, clock_mark=int(time.time() * 1000) + 3_600_000),
}


def with_queue(snapshot: HealthSnapshot, length: int) -> HealthSnapshot:
    assert snapshot.stats
    return replace(snapshot, stats=replace(snapshot.stats, queues={"default": (length, 0)}))
