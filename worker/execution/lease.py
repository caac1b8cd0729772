"""Keeping the right to run: one thread of a process renews the leases of everything it runs, in one round trip.

Only Redis time counts; a lease is asked for again three times within its life, and at least every `HEARD_S`. What a
renewal hears (a stop was asked for, the lease is lost) is told to the run's `LeaseHandle`. Knows no handler and no RQ.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from itertools import islice

from redis.exceptions import RedisError

from ...store.connections.connection import Connection, Patience
from ...store.crashpoints import reach
from ...store.model.errors import StoreError
from ...store.operations.operation import Invocation
from ...store.operations.runs import Run, defer_reconcile, renew
from .service import ThreadService

_LOG = logging.getLogger("toolonce.worker")
_BATCH = 500
"""Leases in one script: it keeps the server busy for about a millisecond."""
HEARD_S = 1.5
"""Longest time between two renewals: a stop is heard within two seconds, also where its announcement is lost."""
_AT_ONCE = Patience(reply=1.0, total=1.0)
"""For a handler that waits for the answer: it does not work meanwhile."""


class LeaseHandle:
    """One run whose lease is kept.

    Attributes:
        standing: ``kept``, ``cancel`` or ``lost``, as the last renewal heard; ``lost`` is for good.
        asked_at: monotonic time at which the lease was last asked for and granted; it lives for a lease from then on.
        left: its handler has ended.
        ending: the last word about the run is on its way; a lease that is gone now may have ended with it.
    """

    __slots__ = ("_hearing", "_on_stop", "asked_at", "ending", "left", "run", "standing")

    def __init__(self, run: Run, asked_at: float) -> None:
        self.run = run
        self.asked_at = asked_at
        self.ending = False
        self.left = False
        self.standing = "cancel" if run.cancel_requested else "kept"
        self._on_stop: Callable[[], None] | None = None
        self._hearing = threading.Lock()

    def when_stopped(self, act: Callable[[], None]) -> None:
        """Do this when it is heard that someone asked for a stop; perhaps twice, from any thread."""
        self._on_stop = act
        if self.standing == "cancel":
            act()

    def hear(self, word: str, asked_at: float) -> bool:
        """What the store says of it, asked at this monotonic time; from any thread. Whether that is news."""
        with self._hearing:  # else an older "kept" could follow upon "lost", or be found without its time
            if self.standing == "lost" or (word != "lost" and asked_at < self.asked_at):
                return False  # the answer to a later question came first
            is_news, self.standing = word != self.standing, word
            if word != "lost":  # a lease that was asked for just now lets its handler be entered
                self.asked_at = asked_at
        if is_news and word == "cancel" and self._on_stop:
            self._on_stop()
        return is_news


class Leases(ThreadService):
    """All leases of one process, and the thread that renews them."""

    def __init__(self, connection: Connection, lease_ms: int) -> None:
        super().__init__("toolonce-leases")
        self.lease_ms = lease_ms
        self.connection = connection
        self.at_once = Connection(connection.url, namespace=connection.space.name, patience=_AT_ONCE)
        self._kept: set[LeaseHandle] = set()
        self._still_inside: set[LeaseHandle] = set()

    def stop(self, deadline: float) -> None:
        """Renew no more; see `Service.stop`."""
        super().stop(deadline)
        self.at_once.close()

    def nudge(self) -> None:
        """Renew now, since the store may have a request to stop."""
        self._bell.set()

    def keep(self, lease: LeaseHandle) -> LeaseHandle:
        """Keep this lease from now on, until it is dropped."""
        self._kept.add(lease)
        return lease

    def drop(self, lease: LeaseHandle) -> None:
        """Drop this lease; its run is settled, given back, or given up."""
        self._kept.discard(lease)

    def defer_reconcile(self, lease: LeaseHandle) -> None:
        """Its run is given up while its handler is still at work: no reconcile is to ask what it has done."""
        self._still_inside.add(lease)
        if lease.left:
            self._still_inside.discard(lease)

    def leave(self, lease: LeaseHandle) -> None:
        """The handler of a run that was given up has ended."""
        lease.left = True
        self._still_inside.discard(lease)

    def held(self) -> tuple[LeaseHandle, ...]:
        """Everything that runs now, as far as this process knows."""
        return tuple(self._kept.copy())

    def renew_now(self) -> None:
        """One round of renewals.

        Raises:
            StoreUnavailable: the store did not hear all of them.
        """
        held = self.held()
        lost = [lease for lease in held if lease.standing == "lost"]
        leases = iter([lease for lease in held if lease.standing != "lost"])
        while batch := tuple(islice(leases, _BATCH)):
            reach("in_renew")
            asked_at = time.monotonic()
            words = self.connection.run(self.renewal(batch))
            self._heard(batch, words, asked_at)
        self._defer_reconcile([lease.run for lease in (*lost, *self._still_inside.copy())])

    def _defer_reconcile(self, runs: Sequence[Run]) -> None:
        for start in range(0, len(runs), _BATCH):
            self.connection.run(
                defer_reconcile(self.connection.space, runs[start : start + _BATCH], wait_ms=self.lease_ms)
            )

    def renewal(self, leases: Sequence[LeaseHandle]) -> Invocation[tuple[str, ...]]:
        """The request to prolong these leases."""
        return renew(self.connection.space, [lease.run for lease in leases], lease_ms=self.lease_ms)

    def is_kept(self, lease: LeaseHandle, ask: Callable[[Invocation[tuple[str, ...]]], tuple[str, ...]]) -> bool:
        """Whether the right to run is still there. The store is asked only where the lease may have run out meanwhile:
        this process was stopped, or the store was away.
        """
        asked_at = time.monotonic()
        if lease.standing != "lost" and asked_at - lease.asked_at >= self.lease_ms / 1000:
            self._heard([lease], ask(self.renewal([lease])), asked_at)
        return lease.standing != "lost"

    def check(self, lease: LeaseHandle) -> str:
        """``kept``, ``cancel`` or ``lost``, for a handler that asks while it runs. A lease that may have run out and
        that the store does not confirm at once is lost: someone else may have the call by now.
        """
        try:
            return lease.standing if self.is_kept(lease, self.at_once.run) else "lost"
        except (StoreError, RedisError) as error:
            _LOG.warning("call %s: its lease may have run out, and the store does not tell: %s", lease.run.call, error)
            return "lost"

    def _heard(self, batch: Sequence[LeaseHandle], words: Sequence[str], asked_at: float) -> None:
        for lease, word in zip(batch, words, strict=True):
            is_news = lease.hear(word, asked_at)
            if is_news and word == "lost" and lease in self._kept and not lease.ending:
                _LOG.warning("call %s: its lease under fence %d is lost", lease.run.call, lease.run.fence)

    def _work(self) -> None:
        while True:
            self._bell.wait(min(self.lease_ms / 3000, HEARD_S))
            self._bell.clear()
            if self._ended:
                return
            try:
                self.renew_now()
            except (StoreError, RedisError) as error:  # RedisError: a full disk, a replica, ...: the next round may do
                _LOG.warning("leases could not be renewed: %s", error)
