"""Counters and histograms from the event stream: changes of state, waiting and running times, lost leases.

Decides what counts as which metric. Keeps the times of a bounded number of open calls. Earlier events are not counted.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram

from .events import Event

OPEN_MOST = 100_000
"""Most calls whose times are kept, about 20 MB. The oldest ones are dropped first, and then not measured."""
BUCKETS = (0.005, 0.02, 0.1, 0.5, 1, 5, 15, 60, 300, 1_800, 7_200)
"""Bounds in seconds, for idle workers up to queues that no worker serves."""
RECOVERY = {"lose", "repush", "expire", "free", "reconcile"}


@dataclass(slots=True)
class _Moments:
    queued_at: int = 0
    claimed_at: int = 0


class EventMetrics:
    """Counts events; feed them in order."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._open: OrderedDict[str, _Moments] = OrderedDict()
        self._moves = Counter(
            "toolonce_transitions", "Changes of state", ["tool", "operation", "source", "target"], registry=registry
        )
        self._lost = Counter("toolonce_lease_losses", "Runs whose lease was lost", ["tool"], registry=registry)
        self._mended = Counter("toolonce_recovery_work", "What recovery did", ["operation"], registry=registry)
        self._waited = Histogram(
            "toolonce_queue_delay_seconds", "From queued to claimed", ["tool"], buckets=BUCKETS, registry=registry
        )
        self._ran = Histogram(
            "toolonce_run_seconds",
            "From claimed to the end of the attempt",
            ["tool"],
            buckets=BUCKETS,
            registry=registry,
        )

    def feed(self, event: Event) -> None:
        """Count one event."""
        got = event.facts.get
        tool, operation = str(got("counted_as") or got("tool", "")), str(got("op", ""))
        if target := got("to"):
            self._moves.labels(tool, operation, got("from") or "", target).inc()
        if operation == "lose":
            self._lost.labels(tool).inc()
        if operation in RECOVERY:
            self._mended.labels(operation).inc()
        self._time(event, tool)

    def _time(self, event: Event, tool: str) -> None:
        at, source, target = int(event.facts["at"]), event.facts.get("from"), event.facts.get("to")
        moments = self._open.pop(event.call, None) or _Moments()
        if target == "running" and moments.queued_at:
            self._waited.labels(tool).observe((at - moments.queued_at) / 1000)
        if source == "running" and target and moments.claimed_at:
            self._ran.labels(tool).observe((at - moments.claimed_at) / 1000)
        if target == "queued":
            moments.queued_at = at
        elif target == "running":
            moments.claimed_at = at
        if target in ("queued", "running") or not target:
            self._open[event.call] = moments
            if len(self._open) > OPEN_MOST:
                self._open.popitem(last=False)
