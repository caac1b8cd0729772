"""One claimed run, from its claim to the last word about it: every write under its fence is sent from here.

G1 (no second writer) is kept in this file and in the scripts behind it. Its helpers: `lease` renews the leases of all
runs in one request, `persist` sends a write until the store has heard it, `replicas` asks whether a failover could
lose it. Decides no outcome: that is `policy`'s. Knows no RQ, no slot and no way in which handlers are run.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, Self

from redis.exceptions import RedisError

from ...store.connections.connection import Connection
from ...store.crashpoints import reach
from ...store.model.errors import StoreError, StoreFull, StoreUnavailable
from ...store.model.keyring import Keyring
from ...store.model.outcomes import Failure
from ...store.model.secret_texts import NO_SECRETS, Secrets
from ...store.model.specs import Effect
from ...store.operations.runs import (  # fmt: skip
    Delivery,
    Ending,
    NextClaim,
    NotRun,
    Run,
    SettleAnswer,
    begin,
    claim,
    declare,
    interrupt,
    progress,
    release,
    retry_later,
    retry_not_started,
)  # fmt: skip
from ..tools.errors import NotStarted
from ..tools.handler_result import told
from .counters import Counters
from .lease import LeaseHandle, Leases
from .persist import OperationRunner, Persistence
from .replicas import Replicas

_LOG = logging.getLogger("toolonce.worker")
Raised = Mapping[str, Any] | None
_ENDS_WITHIN_MS = 1_000
"""The process ends once an interrupt by a shutdown is told; until then its handlers are at work."""


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What every run of a process works with."""

    connection: Connection
    leases: Leases
    persistence: Persistence
    replicas: Replicas
    keyring: Keyring
    counters: Counters
    nudge: Callable[[int], None]
    """Told in how many ms a call is due again."""


class RunSession:
    """The right to run one call: its fence, its lease, and all that is written under them. Entered as a context it
    keeps the lease; whoever has claimed enters it at once. It is also the `call.CallChannel` of its handler; any thread
    of the handler may use that part.

    Attributes:
        lease: the lease that is renewed while this run is at work.
        secrets: what must not turn up in a progress message; known once the arguments are read.
        durable: enough replicas have the claim, or it needs none.
        is_remembered: no failover may forget the claim; else its fence is not proof of anything.
        begun: the effect may have started. True also where `begin` was sent and its answer never came.
        following: the next call, taken together with the end of this one; to be run by who asked for it.
    """

    __slots__ = (
        "_closed",
        "_confirmed",
        "_context",
        "_gate",
        "begun",
        "durable",
        "following",
        "is_remembered",
        "lease",
        "secrets",
    )

    def __init__(self, context: WorkerContext, run: Run, asked_at: float, *, durable: bool = True) -> None:
        self._context = context
        self._closed = False
        self._gate = threading.Lock()
        self._confirmed = False
        self.lease = LeaseHandle(run, asked_at)
        self.secrets: Secrets = NO_SECRETS
        self.durable = durable
        self.is_remembered = durable and not run.is_forgettable
        self.begun = False
        self.following: RunSession | None = None

    @classmethod
    def claim(
        cls, context: WorkerContext, delivery: Delivery, sends: OperationRunner, *, seen_fence: int
    ) -> RunSession | NotRun:
        """Claim a call, under a new fence. It is asked again for as long as it takes: the claim may have happened, and
        is ours to run then.

        Raises:
            StoreUnavailable: see `Persistence.write`.
        """
        short = context.replicas.short
        if short:
            delivery = delivery.forgettable
        request = claim(
            context.connection.space, delivery,
            lease_ms=context.leases.lease_ms, seen_fence=seen_fence, bar_mutating=short,
        )  # fmt: skip
        asked_at, what = time.monotonic(), f"the claim of call {delivery.call}"
        if short:  # only what replicas need not have comes of it
            run, enough = context.persistence.write(sends, request, what=what), True
        else:
            run, enough = context.replicas.write(sends, request, what=what)
        if isinstance(run, NotRun):
            return run
        return cls(context, run, asked_at, durable=enough)

    def __enter__(self) -> Self:
        """Keep its lease. Nothing that happens inside can leave behind a lease that is renewed and that nobody works
        under; before, a lease runs out by itself."""
        self._context.leases.keep(self.lease)
        return self

    def __exit__(self, *exception: object) -> None:
        self.let_go()

    @property
    def run(self) -> Run:
        return self.lease.run

    # Before the handler is entered.

    def declare(self, strict: Run, sends: OperationRunner) -> bool:
        """Write how strict the tool of this worker is, and go on as that. Whether enough replicas have it, and with it
        the claim; a lease that turns out lost is noted."""
        try:
            request = declare(self._context.connection.space, strict)
            what = f"the declaration of call {strict.call}"
            word, enough = self._context.replicas.write(sends, request, what=what)
        except StoreUnavailable as error:
            _LOG.error("call %s: %s", strict.call, error)
            word, enough = "lost", True
        if word == "lost":
            self.lease.hear("lost", time.monotonic())
            return True
        self.lease.run = strict
        return enough or strict.effect is not Effect.MUTATING

    def is_kept(self, sends: OperationRunner) -> bool:
        """Whether the right to run is still there; the store is asked where the lease may have run out."""
        persistence = self._context.persistence
        try:
            return self._context.leases.is_kept(
                self.lease, lambda request: persistence.write(sends, request, what="a lease")
            )
        except StoreUnavailable as error:
            _LOG.error("call %s: %s", self.run.call, error)
            return False

    # While the handler is at work: its `call.CallChannel`.

    def begin(self) -> str:
        reach("before_begin")
        with self._gate:
            if self._closed:
                return "lost"
            before, self.begun = self.begun, True
        try:
            word, enough = self._run_begin()
        except StoreFull as error:
            self.begun = before
            if not self.run.begins:  # its effect counts from the entry on: it cannot say "nothing happened"
                raise
            raise NotStarted("the store has no memory left for begin()", retry_after=1) from error
        if word == "begun" and not enough:
            self._fall_short(before)
        self._confirmed = self._confirmed or word == "begun"
        self.begun = before or word == "begun"
        return word

    def _fall_short(self, before: bool) -> NoReturn:
        """Nothing may start. Where an earlier `begin` of this attempt was sent, nobody is told that nothing has."""
        why = "too few replicas have the word that the effect begins"
        if before:
            raise StoreUnavailable(why)
        self.begun = False
        raise NotStarted(why, retry_after=1)

    def _run_begin(self) -> tuple[str, bool]:
        """The answer; and whether enough replicas have it. Where the effect counts from the entry on, that was asked
        for at the claim."""
        run, connection = self.run, self._context.connection
        request = begin(connection.space, run)
        if run.begins and run.effect is Effect.MUTATING and not self._confirmed:
            return connection.run(self._context.replicas.acknowledging(request))
        return connection.run(request), True

    def progress(self, fraction: float | None, message: str) -> bool:
        if self._closed:
            return False
        request = progress(self._context.connection.space, self.run, fraction, told(message, self.secrets))
        try:
            return self._context.leases.at_once.run(request)
        except (StoreError, RedisError) as error:  # a report that is lost is no reason to end a handler in mid-effect
            _LOG.warning("call %s: its progress is not stored: %s", self.run.call, error)
            return self.standing() != "lost"

    def standing(self) -> str:
        return "lost" if self._closed else self._context.leases.check(self.lease)

    # Its end.

    @contextmanager
    def last_word(self) -> Iterator[None]:
        """Around the write that ends this run. A thread that the handler left behind has nothing to say any more:
        either `begun` is set before the end is decided, or nothing begins. Whatever happens, the lease is let go: one
        that nobody works under must run out."""
        with self._gate:
            self._closed = True
        self.lease.ending = True
        try:
            yield
        except StoreUnavailable as error:
            _LOG.error("call %s: %s; recovery decides what becomes of it", self.run.call, error)
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Renew its lease no more."""
        self._context.leases.drop(self.lease)

    def stay_inside(self) -> None:
        """Its handler was given up and is still at work: no reconcile is to ask yet what it has done."""
        self._context.leases.defer_reconcile(self.lease)

    def left(self) -> None:
        """Its handler, which was given up, has come back."""
        self._context.leases.leave(self.lease)

    def settle(
        self, sends: OperationRunner, ending: Ending, *, raised: Raised = None, wish: NextClaim | None = None
    ) -> SettleAnswer:
        """Store an outcome, and take the next call where one is wished for; see `Replicas.settle`."""
        asked_at = time.monotonic()
        heard, enough = self._context.replicas.settle(sends, self.run, ending, raised=raised, wish=wish)
        if heard.due_ms is not None:
            self._context.nudge(heard.due_ms)
        if heard.next:
            self.following = RunSession(self._context, heard.next, asked_at, durable=enough)
        return heard

    def retry_later(
        self, sends: OperationRunner, delay_ms: int, failure: Failure, *, counts: bool, raised: Mapping[str, Any]
    ) -> None:
        """Queue it again after a delay; `counts` whether this was one of its attempts."""
        again = retry_later if counts else retry_not_started
        space = self._context.connection.space
        self._write_end(sends, again(space, self.run, delay_ms=delay_ms, failure=failure, raised=raised))

    def interrupt(self, sends: OperationRunner, reason: str, *, inside_ms: int) -> None:
        """Give it up where it stands; its handler may be at work for `inside_ms` more."""
        self._write_end(sends, interrupt(self._context.connection.space, self.run, reason=reason, inside_ms=inside_ms))

    def give_back(self, sends: OperationRunner, held: str, approval_ms: int) -> None:
        """Give it back unentered: queued again, or held for what `held` names."""
        self._write_end(sends, release(self._context.connection.space, self.run, held=held, approval_ms=approval_ms))

    def _write_end(self, sends: OperationRunner, request: Any) -> None:
        self._context.persistence.write(sends, request, what=f"the end of call {self.run.call}")


def interrupt_all(connection: Connection, leases: Leases, reason: str) -> None:
    """Give up every run of this process, which has to go: the store hears it at once instead of after a lease. Mutating
    calls that were entered become unknown, others are queued again, by the rule for a lease that ran out. A handler
    that still ends before the process does may add its late word. What the store does not hear, the leases tell it."""
    for lease in leases.held():
        try:
            became = connection.run(interrupt(connection.space, lease.run, reason=reason, inside_ms=_ENDS_WITHIN_MS))
        except (StoreError, RedisError) as error:
            _LOG.error("the store does not hear what is given up; its leases will tell: %s", error)
            return
        leases.drop(lease)
        _LOG.warning("call %s (%s) was %s: now %s", lease.run.call, lease.run.tool, reason, became)
