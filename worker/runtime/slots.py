"""The slots of a worker: threads that take a pointer, claim the call and execute it. Three round trips for a first
call, one for each that comes with the end of the one before.

Decides when a slot asks for work and when it ends; a slot claims only what it can run now. Each has a connection of
its own. Knows no signals and no rule of the guarantee.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable

from ...store.connections.connection import Link
from ...store.connections.waiting import mark_handler_context
from ...store.crashpoints import reach
from ...store.model.errors import StoreError
from ...store.operations.runs import Delivery, NextClaim, NotRun
from ..execution.executor import Executor
from ..execution.log_context import working_on
from ..execution.persist import OperationRunner
from ..execution.run_session import RunSession, WorkerContext
from ..execution.runners import Abandoned
from ..maintenance.fence_watermark import ConfirmedWatermark
from .queue_reader import QueueCursor, QueueReader

_LOG = logging.getLogger("toolonce.worker")
_BURST_PAUSE_S = 0.02
"""Between looks at an empty queue while others still work, and may add to it."""


class Slots:
    """All slots of one process; a service.

    Args:
        count: how many.
        burst: end when the queues are empty and nothing runs.

    Attributes:
        executor: what executes a claimed run; to be set before the start.
    """

    executor: Executor

    def __init__(
        self,
        context: WorkerContext,
        queue_reader: QueueReader,
        watermark: ConfirmedWatermark,
        *,
        count: int,
        burst: bool = False,
    ) -> None:
        self.draining = threading.Event()
        self._count = count
        self._context = context
        self._queue_reader = queue_reader
        self._burst = burst
        self._watermark = watermark
        self._numbers = itertools.count()
        self._threads: set[threading.Thread] = set()
        self._busy: set[threading.Thread] = set()

    def start(self) -> None:
        """See `Service.start`."""
        count, self._count = self._count, 0
        for _ in range(count):
            self._add(None)

    def stop(self, deadline: float) -> None:
        """Claim nothing more. It waits for no handler: those had their grace before."""
        if not self._count:
            self.draining.set()

    def wait(self, deadline: float) -> bool:
        """See `Service.wait`: whether no slot works any more."""
        for thread in self._threads.copy():
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads.copy())

    @property
    def alive(self) -> bool:
        """Whether any slot still works or waits; threads given up do not count."""
        return bool(self._threads)

    @property
    def busy(self) -> int:
        return len(self._busy)

    @property
    def has_room(self) -> bool:
        """Whether a call that is queued now may be taken at once."""
        return not self.draining.is_set() and len(self._busy) < len(self._threads)

    def replace(self, given_up: threading.Thread, first: Callable[[OperationRunner], None]) -> None:
        """Give the slot of a thread that overran to a new thread. The old one ends when its handler comes back."""
        self._context.counters.abandoned += 1
        self._add(first)
        self._threads.discard(given_up)
        self._busy.discard(given_up)

    def _add(self, first: Callable[[OperationRunner], None] | None) -> None:
        number = next(self._numbers)
        thread = threading.Thread(target=self._run, args=(number, first), name=f"toolonce-slot-{number}", daemon=True)
        self._threads.add(thread)
        try:
            thread.start()
        except BaseException:
            self._threads.discard(thread)
            raise

    def _run(self, number: int, first: Callable[[OperationRunner], None] | None) -> None:
        mark_handler_context()
        thread = threading.current_thread()
        link = self._context.connection.dedicated()
        try:
            if first:
                first(link)
            self._serve(self._queue_reader.open(number, link, self.draining), link, thread)
        except Abandoned:
            self._context.counters.abandoned -= 1
        except Exception:
            _LOG.exception("a slot failed; another takes its place")
            if not self.draining.is_set():
                self._add(None)
        finally:
            self._threads.discard(thread)
            self._busy.discard(thread)
            link.close()

    def _serve(self, cursor: QueueCursor, link: Link, thread: threading.Thread) -> None:
        while not self.draining.is_set():
            delivery = cursor.next(wait=not self._burst)
            if delivery is None and self._burst and not self._busy:
                return
            if delivery is None:
                self.draining.wait(_BURST_PAUSE_S if self._burst else 0)
                continue
            reach("after_blmove")
            if self.draining.is_set():
                self._queue_reader.put_back(delivery, link)
                return
            self._busy.add(thread)
            self._run_calls(delivery, cursor, link)
            self._busy.discard(thread)

    def _run_calls(self, delivery: Delivery, cursor: QueueCursor, link: Link) -> None:
        """Run the call of this pointer, and those that come with the end of the one before."""
        session = self._claimed(delivery, link)
        while session:
            self._execute(session, cursor, link)
            session = session.following
            if session and self.draining.is_set():
                self.executor.give_back(session, link)
                return

    def _execute(self, session: RunSession, cursor: QueueCursor, link: Link) -> None:
        try:
            with session, working_on(session.run):
                if session.is_remembered:
                    self._watermark.note(session.run.fence)
                reach("after_claim")
                self.executor.execute(session, link, lambda: self._wish(cursor))
        except Exception:
            if session.following:  # nobody else knows of it
                self.executor.give_back(session.following, link)
            raise

    def _wish(self, cursor: QueueCursor) -> NextClaim | None:
        """The next call for a slot that has none any more; nothing in a drain."""
        queue = None if self.draining.is_set() else cursor.next_queue()
        if queue is None:
            return None
        token, lease_ms = self._queue_reader.token(), self._context.leases.lease_ms
        return NextClaim(queue, token, cursor.slot, lease_ms, self._watermark.seen)

    def _claimed(self, delivery: Delivery, link: Link) -> RunSession | None:
        try:
            session = RunSession.claim(self._context, delivery, link, seen_fence=self._watermark.seen)
        except StoreError as error:
            _LOG.warning("call %s: %s", delivery.call, error)
            return None
        if isinstance(session, NotRun):
            self._not_run(delivery, session)
            return None
        return session

    def _not_run(self, delivery: Delivery, why: NotRun) -> None:
        if why.why == "gone":
            self._context.counters.refused_jobs += 1
            _LOG.warning("refused a pointer without a record: %s", delivery.job_id)
            return
        _LOG.debug("call %s is not run: %s %s", delivery.call, why.why, why.detail)
        if why.due_ms is not None:
            self._context.nudge(why.due_ms)
