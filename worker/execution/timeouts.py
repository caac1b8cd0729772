"""Run limits of handlers in the worker's threads: one thread watches for those that overrun, and reports each once.

A thread cannot be stopped from outside; the caller gives a function that decides what to do.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from .service import ThreadService

_LOG = logging.getLogger("toolonce.worker")


class LimitedEntry:
    """One entry under watch: when its limit ends (monotonic seconds), and what is done then."""

    __slots__ = ("ends_at", "overrun")

    def __init__(self, ends_at: float, overrun: Callable[[], None]) -> None:
        self.ends_at = ends_at
        self.overrun = overrun


class RunLimits(ThreadService):
    """The entries under watch, and the thread that watches."""

    def __init__(self) -> None:
        super().__init__("toolonce-limits")
        self._watched: set[LimitedEntry] = set()
        self._wakes_at = float("inf")
        self._changed = threading.Condition()

    def watch(self, ends_at: float, overrun: Callable[[], None]) -> LimitedEntry:
        """Call `overrun`, in the watching thread, unless it is let go before its time."""
        entry = LimitedEntry(ends_at, overrun)
        self._watched.add(entry)
        if ends_at < self._wakes_at:
            with self._changed:
                self._changed.notify()
        return entry

    def let_go(self, entry: LimitedEntry) -> None:
        self._watched.discard(entry)

    def _ring(self) -> None:
        with self._changed:
            self._changed.notify()

    def _work(self) -> None:
        while not self._ended:
            now = time.monotonic()
            for entry in self._watched.copy():
                if entry.ends_at <= now:
                    self._watched.discard(entry)
                    self._tell(entry)
            with self._changed:
                self._wait(now)

    def _tell(self, entry: LimitedEntry) -> None:
        try:
            entry.overrun()
        except Exception:  # no thread to be had, say: the limits of all others still hold
            _LOG.exception("what overran its limit could not be given up")

    def _wait(self, now: float) -> None:
        """Sleep until the next limit. A later entry with an earlier end wakes us."""
        self._wakes_at = float("inf")
        self._wakes_at = min((entry.ends_at for entry in self._watched.copy()), default=now + 60)
        if not self._ended:
            self._changed.wait(max(0.0, self._wakes_at - time.monotonic()))
