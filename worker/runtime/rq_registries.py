"""What a worker shows in RQ's registries: the calls it runs, and the newest ones that it has settled."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ...store.connections.connection import Connection
from ...store.operations.rq_registries import LISTED, ShownRun, Standing, show_runs
from ...store.operations.runs import Run
from ..execution.counters import Counters
from ..execution.lease import Leases

_AT_ONCE = 200
"""Most jobs that one script removes, so that it stays short."""


class RQRegistries:
    """Written with each heartbeat. For people only: the records are right where RQ differs."""

    def __init__(self, connection: Connection, worker: str, leases: Leases, counters: Counters) -> None:
        self._connection = connection
        self._worker = worker
        self._leases = leases
        self._counters = counters
        self._shown: dict[str, ShownRun] = {}

    def show(self) -> None:
        """Bring the registries to where the runs stand now; nothing is sent where nothing has changed.

        Raises:
            StoreError: the store does not answer; the next heartbeat shows what has changed since.
        """
        running = {run.token: _shown(run, Standing.RUNNING) for run in [held.run for held in self._leases.held()]}
        settled = {run.token: _shown(run, Standing.SETTLED) for run in self._newly_settled()}
        listed = dict(islice(reversed(settled.items()), LISTED))
        over = self._shown.keys() - running.keys() - listed.keys()
        changed = [
            *(shown for token, shown in running.items() if token not in self._shown),
            *reversed(listed.values()),
            *(self._shown[token]._replace(how=Standing.OVER) for token in over),
        ]
        unlisted = [shown.job for token, shown in settled.items() if token not in listed]
        self._shown = running
        if changed:
            self._connection.run(show_runs(self._connection.space, self._worker, changed))
        for some in _chunks(unlisted):
            self._connection.run(show_runs(self._connection.space, self._worker, (), unlisted=some))

    def _newly_settled(self) -> Iterator[Run]:
        newly = self._counters.newly_settled
        for _ in range(len(newly)):
            yield newly.popleft()


def _shown(run: Run, how: Standing) -> ShownRun:
    return ShownRun(run.idempotency_key, run.queue, run.token, how)


def _chunks(jobs: list[str]) -> Iterator[list[str]]:
    for first in range(0, len(jobs), _AT_ONCE):
        yield jobs[first : first + _AT_ONCE]
