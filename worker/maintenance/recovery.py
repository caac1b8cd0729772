"""Recovery as one thread of every worker: the store's recovery steps, retention, and calls held until a worker has
their tool.

Decides how often; each step is one bounded script, and any number of workers may do so at once. Nothing in RQ's own
state is looked at.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from ...store.connections.connection import Connection
from ...store.connections.memory_watermark import read_memory, watermark
from ...store.crashpoints import reach
from ...store.model.errors import StoreError, StoreFull
from ...store.model.states import SETTLED
from ...store.operations.controls import paused_queues
from ...store.operations.recovery import Retention, StepResult, adopt, forget, steps, tick
from ..execution.service import ThreadService
from ..tools.tool import Tool
from .fence_watermark import ConfirmedWatermark

_LOG = logging.getLogger("toolonce.worker")
_SLOWEST_S, _FASTEST_MS = 2.0, 10
_RETENTION_EVERY_S = 60.0
_ADOPTED_AGAIN_MS = 200
_USUAL = {"suspected", "available", "woken"}
"""Counts that are no news: what waits for a rate is woken all the time."""
_REPEATS = 20
"""Steps of one kind in a row while there is more; then the others get their turn."""
_BACKLOG_MS = 100
"""Until the next round where there is still more: many calls come back after a pause."""


@dataclass(frozen=True, slots=True)
class ServedBy:
    """What one worker serves: its name, its queues and tools, and the ids of the keys that it holds. Held calls are
    queued for it only while it `has_room` for one; it is told which of its queues to `skip`, since they are paused."""

    worker: str
    queues: Sequence[str]
    tools: Iterable[Tool]
    keys: Sequence[str]
    has_room: Callable[[], bool]
    skip: Callable[[frozenset[str]], None] = lambda paused: None


class Maintenance(ThreadService):
    """Recovery of one worker: a step at a time, in a thread of its own."""

    def __init__(
        self,
        connection: Connection,
        served: ServedBy,
        watermark: ConfirmedWatermark,
        *,
        lease_ms: int,
        retention: Retention,
    ) -> None:
        super().__init__("toolonce-maintenance")
        self._connection = connection
        self._worker = served.worker
        self._watermark = watermark
        self._grace_ms = min(5_000, lease_ms)
        self._every_s = min(_SLOWEST_S, lease_ms / 4000)
        self._retention = retention
        self._queues = tuple(served.queues)
        self._served = [tool.served for tool in served.tools]
        self._keys = tuple(served.keys)
        self._has_room = served.has_room
        self._skip = served.skip
        self._full = False
        self._next_at = 0.0
        self._adopts_again = False

    def nudge(self, delay_ms: int) -> None:
        """Something is due at this time: run the next round no later."""
        at = time.monotonic() + delay_ms / 1000
        if at < self._next_at:
            self._next_at = at
            self._bell.set()

    def once(self, *, enough_replicas: bool = True) -> int | None:
        """One round of recovery; ms until the next one is needed, None where nothing is known to be due. With
        `enough_replicas`, mutating calls that wait for replicas are queued.

        Raises:
            StoreError: the store could not be asked.
        """
        due: int | None = None
        has_more = False
        space, enough = self._connection.space, enough_replicas
        for step in steps(space, self._queues, self._worker, grace_ms=self._grace_ms, enough_replicas=enough):
            reach("in_recovery")
            for _ in range(_REPEATS):
                step_result, told = _read(self._connection.run(step))
                due = due if told is None else told
                _report(step_result)
                if not step_result.more:
                    break
            else:
                has_more = True
        return _sooner(due, has_more)

    def _apply_due(self, *, enough_replicas: bool) -> int | None:
        """Only what time asks for."""
        step_result, due = self._connection.run(tick(self._connection.space, enough_replicas=enough_replicas))
        _report(step_result)
        return _sooner(due, step_result.more)

    def _work(self) -> None:
        whole_at = retention_at = 0.0
        while self._wait():
            now = time.monotonic()
            is_whole = now >= whole_at  # else something is due before: calls that wait for a rate may be, very often
            whole_at = now + self._every_s if is_whole else whole_at
            self._next_at = whole_at
            try:
                self._skip(self._connection.run(paused_queues(self._connection.space, self._queues)))
                enough = self._watermark.compare(self._connection)
                due = self.once(enough_replicas=enough) if is_whole else self._apply_due(enough_replicas=enough)
                if due is not None:
                    self.nudge(max(_FASTEST_MS, due))
                if not is_whole and not self._adopts_again:
                    continue
                self._watch_memory()
                if now >= retention_at:
                    retention_at = now + min(_RETENTION_EVERY_S, self._retention.shortest_ms / 4000)
                    self._forget()
                self._adopt()
            except StoreError as error:
                _LOG.warning("recovery waits for the store: %s", error)
            except Exception:
                _LOG.exception("a round of recovery failed; the next one tries again")

    def _watch_memory(self) -> None:
        """Stop admission near the server's memory limit, and let it go on once there is room."""
        memory = read_memory(self._connection)
        if memory is None:
            return
        full = self._connection.run(watermark(self._connection.space, memory))
        if full is not self._full:
            self._full = full
            _LOG.warning("admission %s: memory %d of %d bytes", "stops" if full else "goes on", *astuple(memory))

    def _wait(self) -> bool:
        """Wait for the next round; False where there is none any more."""
        while not self._ended and (pause := self._next_at - time.monotonic()) > 0:
            self._bell.wait(pause)
            self._bell.clear()
        return not self._ended

    def _adopt(self) -> None:
        """A worker of another version may take them once more; then they are ours a moment later. With no slot free,
        or draining, we would leave them to that worker, which gives them back at once, again and again."""
        if not self._has_room():
            return
        try:
            ours = adopt(self._connection.space, self._served, queues=self._queues, keys=self._keys)
            step_result = self._connection.run(ours)
        except StoreFull:
            return  # nothing new is queued while there is no memory
        _report(step_result)
        self._adopts_again = step_result.counts["adopted"] > 0
        if self._adopts_again:
            self.nudge(_ADOPTED_AGAIN_MS)

    def _forget(self) -> None:
        for state in SETTLED:
            while not self._ended:
                step_result = self._connection.run(forget(self._connection.space, state, self._retention))
                _report(step_result)
                if not step_result.more:
                    break


def _sooner(due: int | None, has_more: bool) -> int | None:
    """In how many ms the next round is due, None for none; at once where this one has left work."""
    return _BACKLOG_MS if has_more and (due is None or due > _BACKLOG_MS) else due


def _read(answer: Any) -> tuple[StepResult, int | None]:
    """A step's answer; `tick` alone also says when it is needed next."""
    return answer if isinstance(answer, tuple) else (answer, None)


def _report(step_result: StepResult) -> None:
    done = {word: count for word, count in step_result.counts.items() if count and word not in _USUAL}
    if done:
        _LOG.info("recovery: %s", ", ".join(f"{count} {word}" for word, count in done.items()))
