"""The life of a worker process: start, work, drain, end.

Puts the parts together and decides the order in which they start and stop, and what signals mean: the first asks for
a drain, the second for an end at once that leaves the same truth. Knows no rule of the guarantee.
"""

from __future__ import annotations

import logging
import os
import socket
import time
import uuid
from dataclasses import dataclass, field
from importlib.metadata import version

from ...store.connections.connection import Connection, Patience
from ...store.connections.durability import Durability, require
from ...store.model.identity import digest
from ...store.model.keyring import Keyring
from ...store.model.times import seconds
from ...store.operations.recovery import Retention
from ...store.operations.tools import publish
from ..execution.counters import Counters
from ..execution.executor import Executor
from ..execution.lease import Leases
from ..execution.persist import KEEP_S, Persistence
from ..execution.replicas import Replicas, RequiredReplicas
from ..execution.run_session import WorkerContext, interrupt_all
from ..execution.runners import InThread, OnLoop, Runner
from ..execution.service import Service, running
from ..execution.timeouts import RunLimits
from ..execution.unheard import without_texts
from ..isolation.process_pool import ProcessPool
from ..maintenance.fence_watermark import ConfirmedWatermark
from ..maintenance.process_identity import identity
from ..maintenance.reconcile import ReconcileLoop
from ..maintenance.reconcilers import Reconcilers
from ..maintenance.recovery import Maintenance, ServedBy
from ..tools.options import Isolation
from ..tools.registry import Registry
from .preflight import check_start
from .queue_reader import QueueReader
from .registration import SIGN_OF_LIFE_S, RegisteredWorker, Registration
from .rq_registries import RQRegistries
from .signals import Signals
from .slots import Slots
from .worker_status import Doing, Report

_LOG = logging.getLogger("toolonce.worker")
DEFAULT_LEASE_MS = 30_000
_STOP_WITHIN_S = 2.0
_HURRIED = Patience(reply=2.0, total=3.0)
"""Patience at the end of the grace: a store that does not answer learns from the leases, and is not waited for."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to work.

    Attributes:
        queues: served queues; () for all queues of the registry's tools.
        concurrency: slots, and so most handlers at once in this process.
        lease_ms: length of a lease; the runs of a dead worker are recovered after it.
        grace_s: from the first signal until running calls are given up. Keep it below the supervisor's own.
        keep_s: how long a result is kept while the store cannot be written.
        abandoned_limit: threads that overran before the worker drains and exits for its supervisor.
        burst: end when the queues are empty.
        replicas: how many must have a claim before a mutating handler is entered; ``all``: as many as there ever were.

    Raises:
        ValueError: a time that is zero, negative, NaN, infinite or shorter than a millisecond.
    """

    queues: tuple[str, ...] = ()
    concurrency: int = 16
    lease_ms: int = DEFAULT_LEASE_MS
    grace_s: float = 25.0
    keep_s: float = KEEP_S
    abandoned_limit: int = 32
    burst: bool = False
    name: str = ""
    durability: Durability = Durability.STRICT
    retention: Retention = field(default_factory=Retention)
    replicas: RequiredReplicas = 0

    def __post_init__(self) -> None:
        seconds("the grace", self.grace_s)
        seconds("the time for which results are kept", self.keep_s)
        if self.replicas != "all" and self.replicas < 0:
            raise ValueError(f"replicas {self.replicas}: give a number, or 'all'")


def run_worker(connection: Connection, registry: Registry, options: Options | None = None) -> int:
    """Work until told to stop; call it in the main thread of a process. Returns the exit code: 0, or 1 where too many
    threads were given up and the worker should be started again.

    Raises:
        StoreUnsafe: the server would break the guarantees at this durability.
        StoreUnavailable: the server does not answer at the start.
        KeyringMissing: a tool has secret fields and there are no keys.
        BadTool: a tool leaves its approval to a hook, and there is none.
        ValueError: an option that protects nothing.
    """
    options = options or Options()
    keyring = Keyring.from_environment()
    for warning in (*check_start(registry, options, keyring), *require(connection, options.durability)):
        _LOG.warning("%s", warning)
    with without_texts(registry):
        return Process(connection, registry, options, keyring=keyring).live(Signals())


class Process:
    """All parts of one worker process."""

    def __init__(self, connection: Connection, registry: Registry, options: Options, *, keyring: Keyring) -> None:
        self._connection = connection
        self._registry = registry
        self._options = options
        self._queues = options.queues or tuple(dict.fromkeys(tool.spec.queue for tool in registry))
        # Never the same name twice: RQ refuses one whose last worker was killed and is still listed.
        self.name = f"{options.name or f'{socket.gethostname()}-{os.getpid()}'}-{uuid.uuid4().hex[:6]}"
        self._counters = Counters()
        persistence = Persistence(options.keep_s)
        replicas = Replicas(
            connection,
            persistence,
            options.replicas,
            lease_ms=options.lease_ms,
            relieved=lambda: self._maintenance.nudge(0),
        )
        watermark = ConfirmedWatermark(replicas.confirm)
        self.queue_reader = QueueReader(connection, self._queues, self.name, self._counters)
        served = ServedBy(
            self.name, self._queues, registry, keyring.ids, has_room=lambda: self.has_room, skip=self.queue_reader.skip
        )
        self._maintenance = Maintenance(
            connection, served, watermark, lease_ms=options.lease_ms, retention=options.retention
        )
        leases = Leases(connection, options.lease_ms)
        self._context = WorkerContext(
            connection, leases, persistence, replicas, keyring, self._counters, nudge=self._maintenance.nudge
        )
        self._slots = Slots(self._context, self.queue_reader, watermark, count=options.concurrency, burst=options.burst)
        self._limits = RunLimits()
        self._loop = OnLoop()
        self._processes = ProcessPool(registry)
        asking = Reconcilers(self._loop, self._processes)
        self._reconcile_loop = ReconcileLoop(self._context, registry, asking.ask, worker=self.name)
        self._registration = Registration(
            self._register,
            self._report,
            lambda: not (self._slots.busy or self._counters.abandoned),
            RQRegistries(connection, self.name, leases, self._counters).show,
        )
        in_thread = InThread(self._limits, self._slots.replace)
        others: dict[Isolation, Runner] = {Isolation.ASYNC: self._loop, Isolation.PROCESS: self._processes}
        self._slots.executor = Executor(self._context, registry, in_thread, others, wait=self._loop.wait_for)
        self._since: dict[str, float] = {}

    @property
    def is_draining(self) -> bool:
        return self._slots.draining.is_set()

    @property
    def has_room(self) -> bool:
        """Whether it could take another call now."""
        return self._slots.has_room

    def services(self, signals: Signals) -> tuple[Service, ...]:
        """All long-lived parts, in the order of their start; they stop in the reverse order."""
        return (
            signals,
            self._processes,  # before any thread: it forks
            self._context.replicas,
            self._registration,
            self._context.leases,
            self._limits,
            self._loop,
            self._reconcile_loop,
            self._maintenance,
            self._slots,
        )

    def live(self, signals: Signals) -> int:
        """From the first registration to the last."""
        with running(self.services(signals), within_s=_STOP_WITHIN_S):
            served = ", ".join(self._queues)
            _LOG.info("worker %s serves %s with %d slots", self.name, served, self._options.concurrency)
            return self._until_told(signals)

    def _register(self) -> RegisteredWorker:
        space = self._connection.space
        registered = RegisteredWorker.create(self._connection, self._queues, self.name)
        registered.identity = space.worker_key(self.name), identity()
        registered.stops = space.wake_channel(self.name), self._context.leases.nudge
        self._connection.run(publish(space, self._registry.specs()))
        return registered

    def _until_told(self, signals: Signals) -> int:
        while self._slots.alive:
            if signals.sleep(0.5 if not self._options.burst else 0.02):
                self._drain(signals)
                return 0
            if self._processes.broken or self._counters.abandoned >= self._options.abandoned_limit:
                _LOG.error("worn out (%d threads given up); draining, to be started again", self._counters.abandoned)
                self._drain(signals)
                return 1
        return 0

    def _drain(self, signals: Signals) -> None:
        """Claim nothing new. Running calls may end within the grace; then they are given up, and the store is told."""
        _LOG.info("draining: %d calls are running", self._slots.busy)
        self._slots.draining.set()
        until = time.monotonic() + self._options.grace_s
        while self._slots.alive and time.monotonic() < until and signals.count < 2:
            signals.sleep(0.05)
        if self._slots.alive:
            self._context.persistence.hurry.set()
            hurried = Connection(self._connection.url, namespace=self._connection.space.name, patience=_HURRIED)
            interrupt_all(hurried, self._context.leases, "interrupted by shutdown")
            hurried.close()
            self._processes.kill_all()

    def _report(self) -> Report:
        counters, leases = self._counters, self._context.leases.held()
        self._since = {lease.run.call: self._since.get(lease.run.call, time.time()) for lease in leases}
        doing = [
            Doing(lease.run.call, lease.run.tool, lease.run.attempt, self._since[lease.run.call]) for lease in leases
        ]
        return Report(
            namespace=self._connection.space.name,
            state="draining" if self._slots.draining.is_set() else "working",
            slots=self._options.concurrency,
            busy=len(leases),
            succeeded=counters.succeeded,
            failed=counters.failed,
            retried=counters.retried,
            interrupted=counters.interrupted,
            given_back=counters.given_back,
            refused_jobs=counters.refused_jobs,
            abandoned=counters.abandoned,
            version=version("toolonce"),
            tools=[tool.name for tool in self._registry],
            doing=sorted(doing, key=lambda item: item.since)[:50],
            specs={tool.name: digest(tool.spec.to_json())[:12] for tool in self._registry},
            grace_s=self._options.grace_s,
            lease_ms=self._options.lease_ms,
            beat_s=SIGN_OF_LIFE_S,
            replicas=str(self._options.replicas),
            lacks_replicas=self._context.replicas.short,
        )
