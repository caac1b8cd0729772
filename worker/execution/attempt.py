"""One attempt at a call, from its entry to its end: what the policy decides is handed to the run's session.

Decides the log lines and the counters of an end. Knows no RQ, no slot and no way in which handlers are run.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...store.crashpoints import reach
from ...store.model.errors import StoreUnavailable
from ...store.model.specs import Effect
from ...store.model.states import State
from ...store.operations.runs import Ending, NextClaim, Run, SettleAnswer
from ..tools.call import context_of
from ..tools.handler_result import End, Kind
from ..tools.options import Isolation
from .invoke import HandlerEntry
from .persist import OperationRunner
from .policy import Circumstances, Interrupt, Nothing, RetryLater, Settle, decide, late, unknown
from .prepare import Ready
from .run_session import RunSession, WorkerContext

_LOG = logging.getLogger("toolonce.worker")


Wish = Callable[[], NextClaim | None]
"""What a slot wants to run next, asked at the moment at which a call ends; None where it wants nothing."""


def no_wish() -> NextClaim | None:
    """For who ends a call and will run no other."""
    return None


class Attempt:
    """One attempt: the right to run a call, and the duty to report its end."""

    __slots__ = ("_claimed_at", "_context", "_ready", "entry", "session")

    def __init__(self, context: WorkerContext, session: RunSession, ready: Ready) -> None:
        self.session = session
        self._context = context
        self._ready = ready
        self._claimed_at = time.monotonic()
        session.secrets = ready.secrets
        limit_ms = ready.tool.spec.timeout_ms
        limit_at = self._claimed_at + limit_ms / 1000 if limit_ms else None
        self.entry = HandlerEntry(ready.tool, ready.values, context_of(session.run, limit_at, session, ready.secrets))

    @property
    def run(self) -> Run:
        return self.session.run

    @property
    def named(self) -> dict[str, Any]:
        """The arguments as decoded, for a handler in another process."""
        return self._ready.named

    def conclude(self, end: End, sends: OperationRunner, wish: Wish = no_wish) -> None:
        """Report the first end; the lease is dropped after it. The next call may come with the answer to an outcome."""
        with self.session.last_word():
            if self._is_left_inside(end):
                self.session.stay_inside()
            reach("before_settle")
            self._follow(self._protected(end), sends, wish)
            reach("after_settle")
        self._trace(end)

    def late(self, end: End) -> None:
        """Report the end of a handler that was given up; it still settles an unknown call."""
        self.session.left()
        end = self._protected(end)
        ending = late(self.run, end)
        _LOG.info("call %s: its handler ended late: %s", self.run.call, end.kind)
        self._trace(end)
        sends = self._context.connection  # this thread has no link of its own
        try:
            if ending:
                self._note(self.session.settle(sends, ending, raised=end.raised), ending)
            elif self.run.effect is Effect.MUTATING:  # it reports nothing, but it has ended: the call can be reconciled
                self.session.settle(sends, unknown(end), raised=end.raised)
        except StoreUnavailable as error:
            _LOG.error("call %s: its late outcome is lost: %s", self.run.call, error)

    def _is_left_inside(self, end: End) -> bool:
        """A handler that overran its run limit inside this process cannot be killed: it goes on."""
        return end.kind is Kind.TIMED_OUT and self.entry.tool.isolation is not Isolation.PROCESS

    def _follow(self, end: End, sends: OperationRunner, wish: Wish) -> None:
        session, counters = self.session, self._context.counters
        match decide(self.run, end, self._ready.tool.retry, self._circumstances()):
            case Settle(ending):
                self._note(session.settle(sends, ending, raised=end.raised, wish=wish()), ending)
            case RetryLater(delay_ms, failure, counts):
                session.retry_later(sends, delay_ms, failure, counts=counts, raised=end.raised)
                counters.retried += 1
                self._context.nudge(delay_ms)
            case Interrupt(reason):
                inside_ms = self._context.leases.lease_ms if self._is_left_inside(end) else 0
                session.interrupt(sends, reason, inside_ms=inside_ms)
                counters.interrupted += 1
            case Nothing():
                _LOG.warning("call %s: stopped, its lease is lost", self.run.call)

    def _note(self, heard: SettleAnswer, ending: Ending) -> None:
        """What the store made of an outcome."""
        if heard.verdict == "settled":
            self._context.counters.settled(self.run, ending.state)
            self._tell(ending)
        elif heard.verdict == "late":
            _LOG.warning(
                "call %s: %s came too late, it is %s already; kept as evidence",
                self.run.call, ending.state, heard.state,
            )  # fmt: skip
        else:
            _LOG.error(
                "call %s: its record is gone; the store has lost writes. It ended: %s", self.run.call, ending.state
            )

    def _tell(self, ending: Ending) -> None:
        """Log one line per end; successes at debug level only."""
        level = logging.DEBUG if ending.state is State.SUCCEEDED else logging.WARNING
        if _LOG.isEnabledFor(level):
            ran_ms = round((time.monotonic() - self._claimed_at) * 1000)
            why = f": {ending.failure.code}" if ending.failure else ""
            told = {"event": "settled", "state": ending.state, "duration_ms": ran_ms}
            _LOG.log(level, "call %s (%s) %s%s", self.run.call, self.run.tool, ending.state, why, extra=told)

    def _trace(self, end: End) -> None:
        """The traceback of an exception: a warning, unless a handler says with it how it went."""
        if not end.traceback:
            return
        level = logging.WARNING if end.kind is Kind.RAISED else logging.INFO
        if _LOG.isEnabledFor(level):
            words = "call %s (%s): attempt %d ended with %s"
            named = (self.run.call, self.run.tool, self.run.attempt, end.raised.get("type", "an exception"))
            line = _LOG.makeRecord(_LOG.name, level, __file__, 0, words, named, None)
            line.exc_text = end.traceback  # a text already: the exception may have been another process's
            _LOG.handle(line)

    def _circumstances(self) -> Circumstances:
        """Times left by Redis time: what was left at the claim, less what has passed on our monotonic clock."""
        run, ran = self.run, time.monotonic() - self._claimed_at
        left = None if run.deadline_at is None else (run.deadline_at - run.claimed_at) / 1000 - ran
        allowed = self._ready.tool.spec.deadline_ms / 1000
        return Circumstances(
            begun=self.session.begun,
            left_s=left,
            waited_s=0.0 if left is None else max(0.0, allowed - left),
            cancel_requested=self.session.lease.standing == "cancel",
        )

    def _protected(self, end: End) -> End:
        """Without secrets in clear: secret parts of the result sealed, what is left of secrets scrubbed, then cut."""
        if end.kind is not Kind.RETURNED:
            return end
        text, marks = self._ready.protect((end.result, end.marks), self.run, self._context.keyring)
        return replace(end, result=text, marks=marks)
