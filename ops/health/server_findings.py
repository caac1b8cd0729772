"""What is wrong with the server and the way to it. Pure; the rest of the rules are in `findings`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from .findings import Finding, Severity
from .health_snapshot import HealthSnapshot

OLDEST = (7, 0)
RQ_KNOWN = ("3.0",)
"""Releases of RQ that were run; their private layout is relied on."""
SLOW_MS, VERY_SLOW_MS = 5.0, 50.0
FILLED, NEARLY_FULL = 0.75, 0.9
COMPACT_BYTES = 256
"""Records whose fields are no longer than this should stay in the server's compact form of a hash."""
LAG_BYTES = 1_000_000
_LOCAL = ("", "localhost", "127.0.0.1", "::1")


def of_the_server(snapshot: HealthSnapshot) -> Iterator[Finding]:
    """All rules about the server, the worst first."""
    yield from _durability(snapshot)
    yield from _kind(snapshot)
    yield from _memory(snapshot)
    yield from _replication(snapshot)
    yield from _way(snapshot)


def _durability(snapshot: HealthSnapshot) -> Iterator[Finding]:
    config = snapshot.config
    lost = "a call that ran may be forgotten in a crash, and run again"
    if config["appendonly"] is None:
        yield Finding(
            "config_barred", Severity.WARNING, "the server does not show its settings (CONFIG is barred)",
            "nobody can check that it fsyncs before it answers and evicts nothing",
            "ask the provider, then run with --durability declared",
        )  # fmt: skip
    elif config["appendonly"] != "yes":
        yield Finding("no_aof", Severity.DANGER, "the server keeps nothing on disk", lost, "CONFIG SET appendonly yes")
    elif config["appendfsync"] != "always":
        what = f"appendfsync is {config['appendfsync']}"
        yield Finding("no_fsync", Severity.DANGER, what, lost, "CONFIG SET appendfsync always")
    if (policy := config["maxmemory-policy"]) not in (None, "noeviction"):
        yield Finding(
            "evicts", Severity.DANGER, f"the server may evict records ({policy})", lost,
            "CONFIG SET maxmemory-policy noeviction",
        )  # fmt: skip
    if snapshot.info.get("aof_last_write_status", "ok") != "ok":
        yield Finding(
            "disk_full", Severity.DANGER, "the server could not write its log the last time", lost,
            "make room on its disk",
        )  # fmt: skip


def _kind(snapshot: HealthSnapshot) -> Iterator[Finding]:
    said = snapshot.info.get("valkey_version") or snapshot.info.get("redis_version", "0")
    version = tuple(int(part) for part in said.split(".")[:2] if part.isdigit())
    if version < OLDEST:
        yield Finding(
            "old_server", Severity.DANGER, f"server version {said}", "scripts need 7.0; older ones refuse them",
            "install Redis or Valkey >= 7.0",
        )  # fmt: skip
    if snapshot.info.get("cluster_enabled") == "1":
        yield Finding(
            "cluster", Severity.DANGER, "this is a Redis Cluster node; toolonce needs one primary",
            "nothing here follows its redirections", "use a server without cluster mode, Sentinel or managed",
        )  # fmt: skip
    if snapshot.rq and not snapshot.rq.startswith(RQ_KNOWN):
        yield Finding(
            "untried_rq", Severity.WARNING, f"RQ {snapshot.rq} is installed; only {', '.join(RQ_KNOWN)} was run",
            "its layout in Redis may have changed", "pip install 'rq>=3,<3.1'",
        )  # fmt: skip


def _memory(snapshot: HealthSnapshot) -> Iterator[Finding]:
    limit, used = int(snapshot.config["maxmemory"] or 0), int(snapshot.info.get("used_memory", 0))
    if snapshot.config["maxmemory"] is not None and not limit:
        yield Finding(
            "no_memory_limit", Severity.NOTICE, "the server has no memory limit",
            "when the machine is full the kernel kills it, in place of a clean refusal of new calls",
            "CONFIG SET maxmemory to three quarters of the machine's",
        )  # fmt: skip
    elif limit and used > limit * FILLED:
        severity = Severity.ERROR if used > limit * NEARLY_FULL else Severity.WARNING
        yield Finding(
            "little_memory", severity, f"{used * 100 // limit} % of the server's memory is used",
            "when it is full, admission stops", "toolonce purge --state succeeded --older-than 1d",
        )  # fmt: skip
    if int(snapshot.config["hash-max-listpack-value"] or COMPACT_BYTES) < COMPACT_BYTES:
        yield Finding(
            "loose_records", Severity.NOTICE, "the server stores records in its loose form",
            "each call takes half as much memory again", f"CONFIG SET hash-max-listpack-value {COMPACT_BYTES}",
        )  # fmt: skip


def _replication(snapshot: HealthSnapshot) -> Iterator[Finding]:
    info = snapshot.info
    if info.get("role") not in (None, "master"):
        yield Finding(
            "replica", Severity.DANGER, "this server is a replica", "it takes no writes, and what it shows is stale",
            f"use the primary: {info.get('master_host', '?')}:{info.get('master_port', '?')}",
        )  # fmt: skip
        return
    replicas = [info[f"slave{number}"] for number in range(int(info.get("connected_slaves", 0)))]
    behind = max((_behind(info, replica) for replica in replicas), default=0)
    if behind > LAG_BYTES:
        yield Finding(
            "replica_lag", Severity.WARNING, f"a replica is {behind} bytes behind",
            "a failover now would lose that much", "look at the replica's disk and network",
        )  # fmt: skip


def _way(snapshot: HealthSnapshot) -> Iterator[Finding]:
    median = snapshot.latency_ms[len(snapshot.latency_ms) // 2] if snapshot.latency_ms else 0.0
    if median > SLOW_MS:
        severity = Severity.ERROR if median > VERY_SLOW_MS else Severity.WARNING
        yield Finding(
            "slow_server", severity, f"a round trip takes {median:.1f} ms", "each call needs three",
            "run workers near the server; look at SLOWLOG GET and the disk's fsync time",
        )  # fmt: skip
    url = urlsplit(snapshot.url)
    if url.scheme == "redis" and url.hostname not in _LOCAL:
        yield Finding(
            "no_tls", Severity.WARNING, f"{url.hostname} is spoken to in clear",
            "arguments and results cross the network readable", "use rediss:// and ops/deploy/users.acl",
        )  # fmt: skip
    if snapshot.user == "default" and url.scheme != "unix":
        yield Finding(
            "default_user", Severity.NOTICE, "everyone uses the server's default user",
            "a harness can do what only workers and operators should", "load ops/deploy/users.acl",
        )  # fmt: skip


def _behind(info: Mapping[str, str], replica: str) -> int:
    offsets = dict(part.split("=", 1) for part in replica.split(",") if "=" in part)
    primary = int(info.get("master_repl_offset", 0))
    return max(0, primary - int(offsets.get("offset", primary)))
