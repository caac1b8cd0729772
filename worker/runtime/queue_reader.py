"""Taking pointers from RQ's queues: one BLMOVE into the queue's intermediate list, and nothing of the job is read.

Decides which queue a slot asks next, and which entries are pointers. An entry that is not an idempotency key is removed
and logged; its job hash is never read.
"""

from __future__ import annotations

import itertools
import logging
import re
import threading
import time
import uuid
from collections.abc import Sequence
from typing import Any

from redis.exceptions import OutOfMemoryError, RedisError

from ...store.connections.connection import Connection, Link
from ...store.connections.memory_watermark import take
from ...store.model.errors import StoreError
from ...store.operations.runs import Delivery
from ..execution.counters import Counters

_LOG = logging.getLogger("toolonce.worker")
_POINTER = re.compile(rb"[0-9a-f]{32}-[0-9a-f]{32}\Z")
_STAY = 16
"""Calls that a slot takes in a row from one queue, before it looks at the others."""
_REPLY_GRACE_S = 5.0
_FULL_PAUSE_S = 0.25
"""Between looks at an empty queue while the server is over its memory limit."""
_ALL_PAUSED_S = 0.25
"""Between looks at whether a queue is paused no longer, where all of them are."""


class QueueReader:
    """The queues of one worker, as its slots see them. A slot begins at one; where that is empty, or long, it looks at
    the others.

    Attributes:
        paused: the queues that are not read, since people have paused them.
    """

    def __init__(self, connection: Connection, queues: Sequence[str], worker: str, counters: Counters) -> None:
        self.queues = tuple(queues)
        self.paused: frozenset[str] = frozenset()
        self._connection = connection
        self._worker = worker
        self._counters = counters
        self._keys = [(connection.space.queue_key(q), connection.space.intermediate_key(q)) for q in self.queues]
        self._tokens = itertools.count()
        self.prefix = uuid.uuid4().hex[:12]
        # One queue: a slot may wait as long as a drain can. Several: it has to look around.
        self._idle_s = 1.0 if len(self.queues) == 1 else 0.25

    def open(self, slot: int, link: Link, stopping: threading.Event) -> QueueCursor:
        """A slot's way to the queues."""
        return QueueCursor(self, slot, link, stopping)

    def skip(self, paused: frozenset[str]) -> None:
        """Read these queues no more, and all others again. What was read before it was heard is parked by its claim."""
        if paused != self.paused:
            _LOG.warning("paused queues: %s", ", ".join(sorted(paused)) or "none any more")
        self.paused = paused

    def take(self, place: int, link: Link, *, wait: bool) -> Delivery | None:
        """One pointer of a queue, or None. Raises redis-py's errors."""
        taken = self._keys[place][1]
        try:
            entry = self._move_one(place, link, wait=wait)
        except OutOfMemoryError:
            entry = link.run(take(self._connection.space, self.queues[place]))
            if entry is None and wait:
                time.sleep(_FULL_PAUSE_S)  # the server does not block then
        if entry is None:
            return None
        if not _POINTER.match(entry):
            self._throw_away(entry, taken, link)
            return None
        return Delivery(entry.decode(), self.queues[place], self.token(), self._worker)

    def token(self) -> str:
        """A new token, for one delivery or one wish."""
        return f"{self.prefix}.{next(self._tokens)}"

    def _move_one(self, place: int, link: Link, *, wait: bool) -> Any:
        source, taken = self._keys[place]
        if not wait:
            return link.once("LMOVE", source, taken, "LEFT", "RIGHT")
        timeout = self._idle_s + _REPLY_GRACE_S
        return link.once("BLMOVE", source, taken, "LEFT", "RIGHT", self._idle_s, timeout=timeout)

    def put_back(self, delivery: Delivery, link: Link) -> None:
        """Give a pointer back unclaimed. Doubled by a crash in between it does no harm."""
        source, taken = self._keys[self.queues.index(delivery.queue)]
        link.command("LPUSH", source, delivery.job_id)
        link.command("LREM", taken, 1, delivery.job_id)

    def _throw_away(self, entry: bytes, taken: str, link: Link) -> None:
        link.command("LREM", taken, 1, entry)
        self._counters.refused_jobs += 1
        _LOG.warning("refused a queue entry that is not a call: %.100r", entry)


class QueueCursor:
    """Where one slot asks for work.

    Attributes:
        slot: the slot's name, unique among all workers.
    """

    def __init__(self, reader: QueueReader, slot: int, link: Link, stopping: threading.Event) -> None:
        self.slot = f"{reader.prefix}.{slot}"
        self._reader = reader
        self._link = link
        self._stopping = stopping
        self._place = slot % len(reader.queues)  # so that the slots are spread over the queues
        self._in_a_row = 0
        self._failures = 0

    def next(self, *, wait: bool = True) -> Delivery | None:
        """The next pointer; None after a while without one, or without the store. Not waiting, all queues are asked."""
        places = self._places(wait=wait)
        if not places:
            self._stopping.wait(_ALL_PAUSED_S if wait else 0)
        for place, waits in places:
            try:
                delivery = self._reader.take(place, self._link, wait=waits)
            except (RedisError, StoreError, OSError) as error:
                self._pause(error)
                return None
            self._failures = 0
            if delivery:
                self._in_a_row = self._in_a_row + 1 if place == self._place else 1
                self._place = place
                return delivery
        self._place, self._in_a_row = (self._place + 1) % len(self._reader.queues), 0
        return None

    def next_queue(self) -> str | None:
        """The queue from which the next call may be taken with the end of this one; None where it is time to look at
        the others. One pointer of it counts as taken."""
        if self._looks_around or self._is_paused(self._place):
            return None
        self._in_a_row += 1
        return self._reader.queues[self._place]

    def _is_paused(self, place: int) -> bool:
        return self._reader.queues[place] in self._reader.paused

    @property
    def _looks_around(self) -> bool:
        """Whether it has stayed long enough: a long queue keeps no other one waiting."""
        return self._in_a_row >= _STAY and len(self._reader.queues) > 1

    def _places(self, *, wait: bool) -> list[tuple[int, bool]]:
        """The queues to ask, in their order, and for which of them to wait; none where all are paused."""
        count = len(self._reader.queues)
        around = [(self._place + step) % count for step in range(count)]
        read = [place for place in around if not self._is_paused(place)]
        if not wait:
            return [(place, False) for place in read]
        if not self._looks_around:
            return [(place, True) for place in read[:1]]
        self._in_a_row = 0
        return [*((place, False) for place in read[1:]), *((place, True) for place in read[:1])]

    def _pause(self, error: Exception) -> None:
        self._failures += 1
        level = logging.WARNING if self._failures == 1 else logging.DEBUG
        _LOG.log(level, "no pointers for now: %s", error)
        self._stopping.wait(min(2.0, 0.05 * 2**self._failures))
