"""What the doctor looks at: one reading of server, store, workers and this process. Asks, and decides nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version

from redis.exceptions import NoPermissionError, ResponseError

from ...store.connections.connection import Connection
from ...store.connections.replication import known_replicas
from ...store.connections.server_info import read_config, read_info
from ...store.connections.urls import listed_replicas
from ...store.model.errors import StoreUnsafe
from ...store.model.keyring import Keyring
from ...store.model.specs import Published
from ...store.model.states import State
from ...store.operations.operation import Query
from ...store.operations.queries import PageRow, Stats
from ...store.operations.recovery import DAY_MS, Retention
from ...store.operations.tools import published
from ...stream.inbox.consumer import GROUP
from ...worker.runtime.worker_status import WorkerRow, read_workers
from ..options.listing import oldest, server_now
from .clocks import read_clocks
from .controls import ControlRow, read_controls
from .counters import read_stats
from .pauses import PauseRow, read_pauses

PINGS = 20
CONFIGS = (
    "appendonly", "appendfsync", "maxmemory-policy", "maxmemory", "min-replicas-to-write", "hash-max-listpack-value",
)  # fmt: skip
MOST_QUARANTINED = 20
MOST_INBOXES = 200
"""Of those that are listed, to look at: a few commands each."""
LATE_MS = 10_000
"""A lease that ran out this long ago should have been found by several sweeps."""


@dataclass(frozen=True, slots=True)
class InboxHealth:
    """One tenant's inbox: entries not yet taken (None where the server cannot tell), taken and not done, and for how
    long the oldest of those has been held, ms."""

    tenant: str
    waiting: int | None
    taken: int
    held_ms: int


@dataclass(frozen=True, slots=True)
class HealthSnapshot:
    """One reading. Config values are None where the server does not let us ask.

    Attributes:
        latency_ms: round trips of PING, sorted.
        barred: what the user may not do, in Redis' words; "" where nothing was barred.
        without_worker: tool -> calls that are held until a worker comes that serves them.
        replicas: the most that there ever were, by the store and the Sentinels.
        clocks: server or host -> ms that its clock is ahead of the primary's.
        clock_mark: the highest Redis time that recovery has seen, ms; 0 for none.
        doubtful, held: the oldest calls in doubt, and the oldest held ones; see `listing.LOOK_AT`.
        quarantined: reasons of the newest inbox entries that were put aside in the last day, the newest first.
        late_leases: leases that ran out long ago and nobody has ended.
        controls, pauses: what people and the code say about which calls may run now.
    """

    url: str
    namespace: str
    info: Mapping[str, str]
    config: Mapping[str, str | None]
    latency_ms: tuple[float, ...]
    stats: Stats | None
    specs: Published
    workers: tuple[WorkerRow, ...]
    without_worker: Mapping[str, int]
    late_leases: int
    inboxes: tuple[InboxHealth, ...]
    user: str
    doubtful: tuple[PageRow, ...] = ()
    held: tuple[PageRow, ...] = ()
    barred: str = ""
    rq: str = ""
    has_keys: bool = False
    clock_mark: int = 0
    quarantined: tuple[str, ...] = ()
    replicas: int = 0
    clocks: Mapping[str, int] = field(default_factory=dict)
    retention: Retention = field(default_factory=Retention)
    controls: tuple[ControlRow, ...] = ()
    pauses: tuple[PauseRow, ...] = ()

    @property
    def paused_queues(self) -> frozenset[str]:
        """The queues that people have paused."""
        targets = (row.target for row in self.pauses if row.setting)
        return frozenset(target.removeprefix("queue:") for target in targets if target.startswith("queue:"))

    @property
    def paused_calls(self) -> int:
        """Queued calls that wait for a resume; those of two pauses count twice."""
        return sum(row.calls.queued for row in self.pauses if row.setting)

    @property
    def live(self) -> tuple[WorkerRow, ...]:
        """The workers that give heartbeats."""
        return tuple(worker for worker in self.workers if not worker.is_silent)


def take(connection: Connection) -> HealthSnapshot:
    """Read everything that is looked at; about thirty round trips, none of them heavy.

    Raises:
        StoreUnavailable: the server does not answer.
    """
    info = read_info(connection)
    base = HealthSnapshot(
        url=connection.url,
        namespace=connection.space.name,
        info=info,
        config={name: read_config(connection, name) for name in CONFIGS},
        latency_ms=_latency(connection),
        stats=None,
        specs=Published(0, {}),
        workers=(),
        without_worker={},
        late_leases=0,
        inboxes=(),
        user=_user(connection),
        rq=version("rq"),
        has_keys=bool(Keyring.from_environment(os.environ).keys),
        clocks=read_clocks(connection, info),
    )
    try:
        return _with_store(connection, base)
    except NoPermissionError as error:
        return replace(base, barred=str(error))
    except StoreUnsafe:
        return base  # a node of a cluster: the rules about the server say so


def _with_store(connection: Connection, base: HealthSnapshot) -> HealthSnapshot:
    border = server_now(connection) - LATE_MS
    specs = connection.run(published(connection.space))
    return replace(
        base,
        stats=read_stats(connection),
        specs=specs,
        workers=read_workers(connection),
        without_worker=_without_worker(connection, sorted(specs.tools)),
        late_leases=int(connection.command("ZCOUNT", connection.space.timed("leases"), "-inf", border)),
        inboxes=_inboxes(connection),
        quarantined=_quarantined(connection, since_ms=border - DAY_MS),
        replicas=max(connection.run(known_replicas(connection.space)), listed_replicas(connection.pool)),
        clock_mark=int(connection.command("HGET", connection.space.marks, "clock") or 0),
        doubtful=oldest(connection, State.UNKNOWN),
        held=oldest(connection, State.HELD),
        controls=read_controls(connection),
        pauses=read_pauses(connection),
    )


def _without_worker(connection: Connection, tools: Sequence[str]) -> dict[str, int]:
    asked = Query([("SCARD", connection.space.no_worker(tool)) for tool in tools], list)
    counted = connection.run(asked) if tools else []
    return {tool: int(number) for tool, number in zip(tools, counted, strict=True) if number}


def _user(connection: Connection) -> str:
    try:
        return str(connection.command("ACL", "WHOAMI").decode())
    except ResponseError:
        return ""


def _latency(connection: Connection) -> tuple[float, ...]:
    link, taken = connection.dedicated(), []
    try:
        link.command("PING")
        for _ in range(PINGS):
            start = time.perf_counter()
            link.command("PING")
            taken.append((time.perf_counter() - start) * 1000)
    finally:
        link.close()
    return tuple(sorted(taken))


def _quarantined(connection: Connection, *, since_ms: int) -> tuple[str, ...]:
    words = ("XREVRANGE", connection.space.quarantine, "+", max(0, since_ms), "COUNT", MOST_QUARANTINED)
    found = [dict(zip(fields[::2], fields[1::2], strict=True)) for _, fields in connection.command(*words)]
    return tuple(fields.get(b"reason", b"").decode(errors="replace") for fields in found)


def _inboxes(connection: Connection) -> tuple[InboxHealth, ...]:
    listed = connection.command("SRANDMEMBER", connection.space.inboxes, MOST_INBOXES)  # harnesses list any bytes
    return tuple(_inbox(connection, tenant) for tenant in sorted(name.decode(errors="replace") for name in listed))


def _inbox(connection: Connection, tenant: str) -> InboxHealth:
    stream = connection.space.inbox(tenant)
    try:
        groups = connection.command("XINFO", "GROUPS", stream)
    except ResponseError:
        return InboxHealth(tenant, 0, 0, 0)
    for group in groups:
        known = group if isinstance(group, dict) else dict(zip(group[::2], group[1::2], strict=True))
        if known[b"name"] == GROUP.encode():
            lag = known.get(b"lag")
            return InboxHealth(
                tenant, None if lag is None else int(lag), int(known[b"pending"]), _held(connection, stream)
            )
    return InboxHealth(tenant, int(connection.command("XLEN", stream)), 0, 0)


def _held(connection: Connection, stream: str) -> int:
    pending = connection.command("XPENDING", stream, GROUP, "-", "+", 1)
    return int(pending[0][2]) if pending else 0
