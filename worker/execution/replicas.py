"""Enters only what a failover cannot undo: how many replicas must have a claim, and what to do while they are away.

Decides when mutating calls may be claimed, and keeps the outcomes that too few replicas have. One thread of a process
counts the replicas, asks whether enough of them are back, and sends kept outcomes again. Knows no handler and no queue.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from redis.exceptions import RedisError

from ...store.connections.connection import Connection
from ...store.connections.replication import WAIT_MS, acknowledged, count_replicas, known_replicas, note_replicas
from ...store.model.errors import StoreError
from ...store.model.keys import Namespace
from ...store.model.specs import Effect
from ...store.operations.operation import Acknowledged, Invocation, Operation
from ...store.operations.runs import Ending, NextClaim, Run, SettleAnswer, settle
from .persist import OperationRunner, Persistence
from .service import ThreadService

T = TypeVar("T")
RequiredReplicas = int | Literal["all"]
_LOG = logging.getLogger("toolonce.worker")
_COUNT_EVERY_S = 2.0
_SOONEST_S, _LATEST_S = 0.2, 5.0
"""Between two questions whether enough replicas are back; the wait doubles."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """An outcome that is sent until enough replicas have it."""

    run: Run
    ending: Ending

    def marked(self, space: Namespace, raised: Mapping[str, Any] | None = None) -> Invocation[SettleAnswer]:
        """The outcome, marked as one that a failover may lose."""
        return settle(space, self.run, _in_doubt(self.ending), raised=raised)


class Replicas(ThreadService):
    """The replicas of one process's store.

    Args:
        required: how many must have a claim before a mutating handler is entered; ``all``: as many as there ever were.
            0 asks for none.

        relieved: called when enough are back after too few were.

    Attributes:
        needed: the same as a number.
        short: fewer answer than are needed: no mutating call is to be claimed.
    """

    def __init__(
        self,
        connection: Connection,
        persistence: Persistence,
        required: RequiredReplicas = 0,
        *,
        lease_ms: int = 30_000,
        relieved: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__("toolonce-replicas")
        self.needed = 0 if required == "all" else required
        self.short = False
        self._all = required == "all"
        self._connection = connection
        self._persistence = persistence
        self._wait_ms = min(WAIT_MS, lease_ms // 3)
        self._link = connection.dedicated()
        self._kept: deque[_Kept] = deque()
        self._pause_s = _COUNT_EVERY_S
        self._relieved = relieved

    def start(self) -> None:
        """Learn how many replicas there are, and watch them from then on.

        Raises:
            StoreUnavailable: the server does not answer, or does not tell.
        """
        if self._thread is None and (self.needed or self._all):
            self._look(first=True)
            super().start()

    def stop(self, deadline: float) -> None:
        """Watch no more; outcomes that are still kept are dropped."""
        super().stop(deadline)
        if self._kept:
            _LOG.error("%d outcomes end with this process, and too few replicas have them", len(self._kept))
            self._kept.clear()

    def confirm(self) -> bool:
        """Whether enough replicas have everything that was written so far; one round trip where any are needed.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        if not self.needed or self.short:
            return not self.needed
        request = acknowledged(note_replicas(self._connection.space), self.needed, wait_ms=self._wait_ms)
        return self._suffice(self._connection.run(request)[1])

    def write(self, sends: OperationRunner, invocation: Invocation[T], *, what: str) -> tuple[T, bool]:
        """Run one operation until it is acknowledged; returns also whether enough replicas have it.

        Raises:
            StoreUnavailable: see `Persistence.write`.
        """
        return self._persistence.write(sends, self.acknowledging(invocation), what=what)

    def acknowledging(self, invocation: Invocation[T]) -> Operation[tuple[T, bool]]:
        """The same operation, which also answers whether enough replicas have what it wrote; in the same round trip."""
        if not self.needed:
            return Invocation(
                invocation.script, invocation.root, invocation.args, lambda reply: (invocation.read(reply), True)
            )

        def read(reply: Any, acked: int) -> tuple[T, bool]:
            return invocation.read(reply), self._suffice(acked)

        return Acknowledged(invocation, self.needed, self._wait_ms, read)

    def settle(
        self,
        sends: OperationRunner,
        run: Run,
        ending: Ending,
        *,
        raised: Mapping[str, Any] | None = None,
        wish: NextClaim | None = None,
    ) -> tuple[SettleAnswer, bool]:
        """Store an outcome, and take the next call where one is wished for; and whether enough replicas have its claim.
        An outcome of a mutating call which too few replicas have is kept, and sent again until they have it: a failover
        would lose it, and the call would be in doubt.

        Raises:
            StoreUnavailable: see `Persistence.write`.
        """
        space, what, is_mutating = self._connection.space, f"the end of call {run.call}", run.effect is Effect.MUTATING
        if self.short:
            shown = settle(space, run, _in_doubt(ending), raised=raised, wish=wish.barred if wish else None)
            heard = self._persistence.write(sends, shown, what=what)
            if is_mutating and self.needed:
                self._keep(heard, _Kept(run, ending))
            return heard, True
        if not self.needed or not (is_mutating or wish):
            return self._persistence.write(sends, settle(space, run, ending, raised=raised, wish=wish), what=what), True
        heard, enough = self.write(sends, settle(space, run, ending, raised=raised, wish=wish), what=what)
        if is_mutating and not enough:
            kept = _Kept(run, ending)
            marked = self._persistence.write(sends, kept.marked(space, raised), what=what)
            self._keep(marked, kept)
            heard = replace(marked, next=heard.next)
        return heard, enough

    def _keep(self, heard: SettleAnswer, kept: _Kept) -> None:
        if heard.verdict == "settled":
            self._kept.append(kept)
            self._bell.set()

    def _suffice(self, acked: int) -> bool:
        if acked >= self.needed:
            return True
        if not self.short:
            self.short = True
            _LOG.warning(
                "%d of %d replicas answer: mutating calls wait until the others are back, or workers are started with "
                "a smaller --replicas",
                acked, self.needed, extra={"event": "too_few_replicas"},
            )  # fmt: skip
            self._pause_s = _SOONEST_S
            self._bell.set()
        return False

    def _work(self) -> None:
        while not self._ended:
            self._bell.wait(self._pause_s)
            self._bell.clear()
            try:
                self._look()
            except (StoreError, RedisError) as error:
                _LOG.debug("the replicas cannot be asked for: %s", error)
            except Exception:
                _LOG.exception("a look at the replicas failed; the next one tries again")
            waits = self.short or self._kept
            self._pause_s = min(_LATEST_S, 2 * self._pause_s) if waits else _COUNT_EVERY_S

    def _look(self, *, first: bool = False) -> None:
        """Count them, and ask whether enough are back where too few were. A link that heard too few is opened again:
        the next time Sentinel may name another primary.

        Raises:
            StoreError: the store cannot be asked.
        """
        try:
            if self._all:
                self._count()
            if self.needed and (first or self.short or self._kept):
                self._ask()
        except (StoreError, RedisError):
            self._link.close()
            raise

    def _count(self) -> None:
        known = self._link.run(known_replicas(self._connection.space))
        self.needed = max(self.needed, known, count_replicas(self._connection, self._link))
        if self.needed > known:
            self._link.run(note_replicas(self._connection.space, self.needed))

    def _ask(self) -> None:
        """Send what is kept, and ask how many have that and all before it. It is sent also where too few answer: to the
        primary that a failover has named, which then knows at least itself how the calls ended."""
        space, sent = self._connection.space, [self._kept.popleft() for _ in range(len(self._kept))]
        try:
            sent = [kept for kept in sent if self._link.run(kept.marked(space)).verdict == "settled"]
            request = acknowledged(note_replicas(space), self.needed, wait_ms=self._wait_ms)
            acked = self._link.run(request)[1]
            if not self._suffice(acked):
                self._link.close()
                return
            while sent:
                self._link.run(settle(space, sent[0].run, sent[0].ending))
                sent.pop(0)
        finally:
            self._kept.extend(sent)
        if self.short:
            self.short = False
            _LOG.warning("%d replicas answer again: mutating calls go on", acked, extra={"event": "enough_replicas"})
            self._relieved()


def _in_doubt(ending: Ending) -> Ending:
    """The same outcome, marked as one that a failover may lose."""
    return replace(ending, marks=json.dumps({**json.loads(ending.marks or "{}"), "durable": False}))
