"""One attempt at a call, from its claim to its last word: what the policy decides is told to the store under the fence.

The guarantee is kept here and in `policy`. Knows no RQ, no slot and no way in which handlers are run.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ...store.connections.connection import Connection
from ...store.crashpoints import reach
from ...store.model.errors import StoreUnavailable
from ...store.model.keyring import Keyring
from ...store.model.specs import Effect
from ...store.model.states import State
from ...store.operations.operation import Invocation
from ...store.operations.runs import Ending, Run, interrupt, retry_later, retry_not_started
from ..tools.call import context_of
from ..tools.handler_result import End, Kind
from ..tools.tool import Isolation
from .call_channel import StoreLine
from .counters import Tally
from .invoke import Entry
from .lease import Hold, Leases
from .persist import Persistence, Sends
from .policy import Circumstances, Interrupt, Nothing, RetryLater, Settle, decide, late, unknown
from .prepare import Ready
from .replicas import Replicas

_LOG = logging.getLogger("toolonce.worker")


@dataclass(frozen=True, slots=True)
class Desk:
    """What every attempt of a process works with."""

    connection: Connection
    leases: Leases
    persistence: Persistence
    replicas: Replicas
    keyring: Keyring
    tally: Tally
    nudge: Callable[[int], None]
    """Told in how many ms a call is due again."""


class Attempt:
    """The right to run one call, and the duty to say how it went."""

    __slots__ = ("_claimed_at", "_desk", "_line", "_ready", "entry", "hold", "run")

    def __init__(self, desk: Desk, run: Run, hold: Hold, ready: Ready) -> None:
        self.run = run
        self.hold = hold
        self._desk = desk
        self._ready = ready
        self._claimed_at = time.monotonic()
        self._line = StoreLine(desk.leases, desk.replicas, hold, ready.secrets)
        limit_ms = ready.tool.spec.timeout_ms
        limit_at = self._claimed_at + limit_ms / 1000 if limit_ms else None
        self.entry = Entry(ready.tool, ready.values, context_of(run, limit_at, self._line, ready.secrets))

    @property
    def named(self) -> dict[str, Any]:
        """The arguments as decoded, for a handler in another process."""
        return self._ready.named

    def conclude(self, end: End, sends: Sends) -> None:
        """The first word about how it ended; the lease is let go after it."""
        self._line.close()
        self.hold.ending = True
        if self._is_left_inside(end):
            self._desk.leases.linger(self.hold)
        reach("before_settle")
        try:
            self._follow(self._protected(end), sends)
            reach("after_settle")
        except StoreUnavailable as error:
            _LOG.error("call %s: %s; recovery decides what becomes of it", self.run.call, error)
        finally:
            self._desk.leases.drop(self.hold)
        self._trace(end)

    def late(self, end: End) -> None:
        """A handler that was given up has ended after all: its word still settles an unknown call."""
        self._desk.leases.leave(self.hold)
        end = self._protected(end)
        ending = late(end)
        _LOG.info("call %s: its handler ended late: %s", self.run.call, end.kind)
        self._trace(end)
        connection = self._desk.connection
        try:
            if ending:
                self._settle(ending, connection, end.raised)
            elif self.run.effect is Effect.MUTATING:  # no news, but that it is at work no longer: it can be read back
                self._desk.replicas.settle(connection, self.run, unknown(end), raised=end.raised)
        except StoreUnavailable as error:
            _LOG.error("call %s: its late outcome is lost: %s", self.run.call, error)

    def _is_left_inside(self, end: End) -> bool:
        """A handler that overran and shares our process cannot be killed: it goes on."""
        return end.kind is Kind.TIMED_OUT and self.entry.tool.isolation is not Isolation.PROCESS

    def _follow(self, end: End, sends: Sends) -> None:
        space, run = self._desk.connection.space, self.run
        match decide(run, end, self._ready.tool.retry, self._circumstances()):
            case Settle(ending):
                self._settle(ending, sends, end.raised)
            case RetryLater(delay_ms, failure, counts):
                again = retry_later if counts else retry_not_started
                self._write(sends, again(space, run, delay_ms=delay_ms, failure=failure, raised=end.raised))
                self._desk.tally.retried += 1
                self._desk.nudge(delay_ms)
            case Interrupt(reason):
                inside_ms = self._desk.leases.lease_ms if self._is_left_inside(end) else 0
                self._write(sends, interrupt(space, run, reason=reason, inside_ms=inside_ms))
                self._desk.tally.interrupted += 1
            case Nothing():
                _LOG.warning("call %s: stopped, its lease is lost", run.call)

    def _settle(self, ending: Ending, sends: Sends, raised: dict[str, Any]) -> None:
        heard = self._desk.replicas.settle(sends, self.run, ending, raised=raised)
        if heard.verdict == "settled":
            self._desk.tally.settled(ending.state)
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
        """A line for each end; successes only for those who ask for much."""
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

    def _write(self, sends: Sends, invocation: Invocation[Any]) -> Any:
        return self._desk.persistence.write(sends, invocation, what=f"the end of call {self.run.call}")

    def _circumstances(self) -> Circumstances:
        """Times left by Redis time: what was left at the claim, less what has passed on our monotonic clock."""
        run, ran = self.run, time.monotonic() - self._claimed_at
        left = None if run.deadline_at is None else (run.deadline_at - run.claimed_at) / 1000 - ran
        allowed = self._ready.tool.spec.deadline_ms / 1000
        return Circumstances(
            begun=self._line.begun,
            left_s=left,
            waited_s=0.0 if left is None else max(0.0, allowed - left),
            cancel_requested=self.hold.standing == "cancel",
        )

    def _protected(self, end: End) -> End:
        """Without secrets in clear: secret parts of the result sealed, what is left of secrets scrubbed, then cut."""
        if end.kind is not Kind.RETURNED:
            return end
        text, marks = self._ready.protect((end.result, end.marks), self.run, self._desk.keyring)
        return replace(end, result=text, marks=marks)
