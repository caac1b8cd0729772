"""When an attempt that may run again runs again. tenacity's wait and stop objects serve as pure functions.

Nothing here sleeps and no lease is held while waiting: the delay becomes the call's not_before in the store.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tenacity import RetryCallState, stop_after_attempt, stop_never, wait_random_exponential
from tenacity.stop import stop_base
from tenacity.wait import wait_base

from ...store.model.times import LONGEST_S
from .errors import BadTool

DEFAULT_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how far apart.

    Attributes:
        attempts: most claims of a call, counted when claimed; a worker that dies uses one up, `NotStarted` does not.
        wait: grows and is random by default, so that callers refused together do not return together.
        stop: asked besides; it sees the attempt's number and the seconds since the call was first queued.
    """

    attempts: int = DEFAULT_ATTEMPTS
    wait: wait_base = field(default_factory=lambda: wait_random_exponential(multiplier=0.5, max=60))
    stop: stop_base = stop_never

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise BadTool(f"retry: {self.attempts} attempts run nothing; 1 is the least")
        given = self.wait(_state(1, 0.0))
        if not 0 <= given <= LONGEST_S:
            raise BadTool(f"retry: a wait of {given!r} is not a number of seconds from 0 on")

    def delay_ms(self, attempt: int, *, waited_s: float) -> int | None:
        """The wait before the next attempt after this one; None where there is none any more."""
        state = _state(attempt, waited_s)
        if self.stop(state):
            return None
        given = self.wait(state)
        given = LONGEST_S if math.isnan(given) else min(max(0.0, given), LONGEST_S)
        return round(1000 * given)


def _state(attempt: int, waited_s: float) -> RetryCallState:
    state = RetryCallState(retry_object=None, fn=None, args=(), kwargs={})  # type: ignore[arg-type]
    state.attempt_number = attempt
    state.start_time = 0.0
    state.outcome_timestamp = waited_s
    return state


def read_retry(given: Retry | int | stop_base | wait_base | None) -> Retry:
    """What ``retry=`` may be: a number of attempts, a tenacity wait or stop, or all of it."""
    match given:
        case None:
            return Retry()
        case Retry():
            return given
        case int():
            return Retry(attempts=given)
        case stop_after_attempt():
            return Retry(attempts=given.max_attempt_number)
        case stop_base():
            return Retry(stop=given)
        case wait_base():
            return Retry(wait=given)
        case _:
            raise BadTool(f"retry: {given!r} is not a number of attempts, Retry, or tenacity wait or stop")
