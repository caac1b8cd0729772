"""What follows for a call when an entry into its handler has ended: the guarantee's decisions, as pure functions.

Sees the run, how it ended and what the tool declared; answers with the one move the store is to make. Knows no
thread, no Redis, no RQ, and no clock but the numbers it is given.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from ...store.model.outcomes import Failure
from ...store.model.specs import Effect
from ...store.model.states import State
from ...store.operations.runs import Ending, Run
from ..tools.handler_result import End, Kind
from ..tools.retries import Retry

SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.1, 60.0


@dataclass(frozen=True, slots=True)
class Settle:
    """Store this outcome."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Queue it again, not before a wait; `counts` is False where nothing has started."""

    delay_ms: int
    failure: Failure
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Give it up while its handler may still be at work: the store decides in one step with ``begin``."""

    reason: str


@dataclass(frozen=True, slots=True)
class Nothing:
    """The call belongs to someone else by now."""


Move = Settle | RetryLater | Interrupt | Nothing


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the policy needs besides the end.

    Attributes:
        begun: the handler has said ``begin()``.
        left_s: seconds until the queue deadline by Redis time; None for none.
        waited_s: seconds since the call was first queued.
        cancel_requested: a stop was asked for.
    """

    begun: bool = False
    left_s: float | None = None
    waited_s: float = 0.0
    cancel_requested: bool = False


def decide(run: Run, end: End, retry: Retry, now: Circumstances) -> Move:
    """The one move that follows. A mutating call whose effect may have started is never run again by this."""
    mutating = run.effect is Effect.MUTATING
    exposed = mutating and (now.begun or not run.begins)
    match end.kind:
        case Kind.RETURNED:
            return Settle(Ending(State.SUCCEEDED, end.result, marks=end.marks))
        case Kind.TOOL_ERROR:
            return Settle(_failed(run, end))
        case Kind.LEASE_LOST:
            return Nothing()
        case Kind.NOT_STARTED:
            return _once_more(run, end, now)
        case Kind.TIMED_OUT | Kind.DIED if mutating:
            return Interrupt(end.message)
        case _ if exposed:
            return Settle(unknown(end))
        case Kind.CANCELLED:
            return Settle(_cancelled(run) if mutating else _stopped(Failure(end.code, end.message)))
        case Kind.RAISED if mutating:
            failure = Failure("exception", f"before its effect: {end.message}", effect=effect_so_far(run))
            return Settle(Ending(State.FAILED, failure=failure))
        case _:
            return _again(run, end, retry, now)


def effect_so_far(run: Run) -> str:
    """``none`` where nothing can have been executed before this attempt has its effect, else empty; see `Failure`."""
    untouched = not run.ran_before if run.effect is Effect.MUTATING else run.attempt - run.not_started <= 1
    return "none" if untouched else ""


def _failed(run: Run, end: End) -> Ending:
    """The handler's own failure. That it had no effect is true of the call where no attempt before can have had one."""
    effect = effect_so_far(run) if end.effect == "none" else ""
    return Ending(State.FAILED, failure=Failure(end.code, end.message, end.details, effect))


def late(run: Run, end: End) -> Ending | None:
    """What the end of a handler that was given up still decides: its value or its own failure counts, others do not."""
    match end.kind:
        case Kind.RETURNED:
            return Ending(State.SUCCEEDED, end.result, marks=end.marks)
        case Kind.TOOL_ERROR:
            return _failed(run, end)
        case _:
            return None


def cancelled(run: Run) -> Settle:
    """A claim that finds a stop asked for: the handler is not entered again."""
    return Settle(_cancelled(run))


def _once_more(run: Run, end: End, now: Circumstances) -> Move:
    """After an attempt in which nothing has started. Its bound is the deadline; a call that has none, as only another
    release may have admitted it, has its attempts."""
    if now.cancel_requested:
        return Settle(_cancelled(run))
    if now.left_s is None and run.attempt >= run.attempt_limit:
        return Settle(_given_up(run, end, "attempts_exhausted", f"gave up after {run.attempt} attempts"))
    wait_s = not_started_wait_s(run.not_started, end.retry_after)
    if now.left_s is not None and wait_s >= now.left_s:
        return Settle(_given_up(run, end, "deadline_exceeded", "its deadline passes before another attempt"))
    failure = Failure(end.code, end.message, {"attempt": run.attempt})
    return RetryLater(round(wait_s * 1000), failure, counts=now.left_s is None)


def not_started_wait_s(times: int, retry_after: float | None) -> float:
    """The wait after an attempt in which nothing has started: what it asked for, at least 0.1 s. Else from 1 s on,
    twice as long each time, up to 60 s, give or take a quarter, so that those refused together come back apart."""
    if retry_after is not None:
        return max(SHORTEST_WAIT_S, retry_after)
    return min(LONGEST_WAIT_S, 2.0 ** min(times, 10)) * random.uniform(0.75, 1.25)  # noqa: S311


def _again(run: Run, end: End, retry: Retry, now: Circumstances) -> Move:
    failure = Failure(end.code, end.message, {"attempt": run.attempt})
    if now.cancel_requested:
        return Settle(_stopped(failure))
    delay = retry.delay_ms(run.attempt - run.not_started, waited_s=now.waited_s)
    if delay is None or run.attempt >= run.attempt_limit:
        return Settle(_given_up(run, end, "attempts_exhausted", f"gave up after {run.attempt} attempts"))
    if now.left_s is not None and delay / 1000 >= now.left_s:
        return Settle(_given_up(run, end, "deadline_exceeded", "its deadline passes before another attempt"))
    return RetryLater(delay, failure)


def _given_up(run: Run, end: End, code: str, why: str) -> Ending:
    details = {"attempt": run.attempt, "last": {"code": end.code, "message": end.message}}
    effect = effect_so_far(run) if end.kind is Kind.NOT_STARTED else ""
    return Ending(State.FAILED, failure=Failure(code, f"{why}; the last one: {end.message}", details, effect))


def unknown(end: End) -> Ending:
    """Entered, and nobody knows whether the effect happened."""
    why = "stopped on request" if end.kind is Kind.CANCELLED else end.message
    return Ending(
        State.UNKNOWN,
        failure=Failure(
            "outcome_unknown",
            f"it is not known whether the effect happened: {why}",
            {"ended": end.kind.value, **end.details},
        ),
    )


def _stopped(last: Failure) -> Ending:
    """Not run again, on request; what a repeatable attempt has done by then is not known."""
    why = f"stopped on request; its last attempt ended without an outcome: {last.message}"
    return Ending(State.FAILED, failure=Failure("cancelled", why, last.details))


def _cancelled(run: Run) -> Ending:
    entered = {"attempts": run.attempt}
    why = "stopped on request before its effect"
    return Ending(State.FAILED, failure=Failure("cancelled", why, entered, effect_so_far(run)))
