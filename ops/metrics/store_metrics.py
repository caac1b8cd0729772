"""The store's counters and ages as Prometheus metrics, read at each scrape, so that no crash makes them wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ...store.connections.connection import Connection
from ...store.model.controls import ControlKind
from ...store.model.errors import StoreError
from ...store.model.rates import Rate
from ...store.model.states import State
from ...store.operations.queries import Stats
from ...worker.runtime.worker_status import read_workers
from ..health.controls import ControlRow, read_controls
from ..health.counters import read_stats
from ..health.pauses import PauseRow, read_pauses


class StoreMetrics(Collector):
    """Collects the metrics; where the store does not answer, only `toolonce_up 0`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def collect(self) -> Iterator[Metric]:
        try:
            stats, listed = read_stats(self._connection), read_workers(self._connection)
            limits, pauses = read_controls(self._connection), read_pauses(self._connection)
        except StoreError:
            yield GaugeMetricFamily("toolonce_up", "Whether the store answers", value=0)
            return
        yield GaugeMetricFamily("toolonce_up", "Whether the store answers", value=1)
        yield from _ledger(stats)
        yield _calls(stats)
        yield from _waiting(stats)
        yield from _limits(limits)
        yield from _pauses(pauses)
        workers = [worker for worker in listed if not worker.is_silent]
        yield GaugeMetricFamily("toolonce_workers", "Live workers", value=len(workers))
        busy = sum(worker.report.busy for worker in workers if worker.report)
        yield GaugeMetricFamily("toolonce_busy_slots", "Calls that workers report as running", value=busy)


def _ledger(stats: Stats) -> Iterator[Metric]:
    counts = stats.counts
    yield CounterMetricFamily("toolonce_admitted", "Calls ever admitted", value=counts.get("admitted", 0))
    yield CounterMetricFamily("toolonce_settled", "Calls settled; a retry decreases it", value=counts.get("settled", 0))
    yield GaugeMetricFamily("toolonce_open_calls", "Calls not settled", value=stats.open)
    yield GaugeMetricFamily("toolonce_unknown_calls", "Unknown calls now", value=counts.get("state:unknown", 0))
    yield GaugeMetricFamily("toolonce_balanced", "1 where admitted = settled + open", value=int(stats.balanced))
    yield GaugeMetricFamily(
        "toolonce_went_back", "1 after the store lost writes", value=int("went_back" in stats.flags)
    )


def _calls(stats: Stats) -> Metric:
    family = GaugeMetricFamily("toolonce_calls", "Calls by state and tool", labels=["state", "tool"])
    for name, number in sorted(stats.counts.items()):
        kind, _, rest = name.partition(":")
        if kind == "tool":
            state, _, tool = rest.partition(":")
            family.add_metric([state, tool], number)
    return family


def _waiting(stats: Stats) -> Iterator[Metric]:
    queues = GaugeMetricFamily("toolonce_queue_length", "Pointers in a queue", labels=["queue"])
    for queue, (waiting, _) in stats.queues.items():
        queues.add_metric([queue], waiting)
    yield queues
    ages = GaugeMetricFamily("toolonce_oldest_seconds", "Age of the oldest call of an open state", labels=["state"])
    for state in (State.HELD, State.QUEUED, State.RUNNING, State.UNKNOWN):
        at = stats.oldest_at[state]
        ages.add_metric([state], (stats.read_at - at) / 1000 if at else 0.0)
    yield ages


def _limits(rows: Sequence[ControlRow]) -> Iterator[Metric]:
    most = GaugeMetricFamily(
        "toolonce_limit", "Most calls at once: in force, set by people, in the code", labels=["target", "by"]
    )
    rate = GaugeMetricFamily(
        "toolonce_rate_per_second",
        "Most starts in a second: in force, set by people, in the code",
        labels=["target", "by"],
    )
    queued = GaugeMetricFamily("toolonce_queue_limit", "Most calls that wait, as people have set it", labels=["target"])
    running = GaugeMetricFamily("toolonce_limited_running", "Running calls under a limit", labels=["target"])
    waiting = GaugeMetricFamily(
        "toolonce_limited_waiting", "Calls that wait for a limit, a rate or the end of a pause", labels=["target"]
    )
    for row in rows:
        people = row.people.value if row.people else None
        for by, value in (("in_force", row.in_force), ("people", people), ("code", row.code)):
            if value is not None and row.kind is ControlKind.LIMIT:
                most.add_metric([row.target, by], float(value))
            elif value is not None and row.kind is ControlKind.RATE:
                rate.add_metric([row.target, by], Rate.from_stored(value).per_second)
        if row.use and row.kind is ControlKind.LIMIT:
            running.add_metric([row.target], row.use.running)
        if row.kind is ControlKind.QUEUE_LIMIT and people:
            queued.add_metric([row.target], float(people))
        elif row.use:
            waiting.add_metric([row.waited_for_as], row.use.waiting)
    yield from (most, rate, queued, running, waiting)


def _pauses(rows: Sequence[PauseRow]) -> Iterator[Metric]:
    since = GaugeMetricFamily("toolonce_paused_since_seconds", "When a pause in force began", labels=["target"])
    queued = GaugeMetricFamily("toolonce_paused_calls", "Queued calls that a pause is about", labels=["target"])
    parked = GaugeMetricFamily("toolonce_parked_calls", "Those of them that have no pointer", labels=["target"])
    for row in rows:
        if row.setting:
            since.add_metric([row.target], (row.setting.since or row.setting.at) / 1000)
        queued.add_metric([row.target], row.calls.queued)
        parked.add_metric([row.target], row.calls.parked)
    yield from (since, queued, parked)
