"""How an attempt ended, told to the store: its outcome under its fence, and in the same step the next call's claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..model.keys import Namespace
from ..model.outcomes import Failure
from ..model.states import State
from .claimed_run import Delivery, NextClaim, Run, attempt_of, read_run
from .operation import Invocation, invocation
from .outcome_codec import failure_json, raised_json
from .script_arguments import Each, Flag, arguments_of, flag, repeated


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ended: a settled state with its value or failure, or unknown.

    Attributes:
        result: JSON text of the value; "" where there is none.
        marks: JSON text of facts about the stored form; "" for none.
    """

    state: State
    result: str = ""
    failure: Failure | None = None
    marks: str = ""


@dataclass(frozen=True, slots=True)
class SettleAnswer:
    """What the store made of an ending: ``settled``, ``late`` (kept as evidence only) or ``gone``, and the state that
    the call is in now; and the next call, where one was asked for and there was one.

    Attributes:
        due_ms: in how many ms a call may start that was passed over since its tool starts no more of them for now.
    """

    verdict: str
    state: State | None = None
    next: Run | None = None
    due_ms: int | None = None


@repeated
class NextClaimArgs(NamedTuple):
    queue: str
    token: str
    slot: str
    lease_ms: int
    seen_fence: int
    bar_mutating: Flag


@arguments_of("settle")
class SettleArgs(NamedTuple):
    call: str
    fence: int
    token: str
    state: str
    result: str
    error: str
    marks: str
    worker: str
    raised: str
    next: Each[NextClaimArgs]


def settle(
    space: Namespace,
    run: Run,
    ending: Ending,
    *,
    raised: Mapping[str, Any] | None = None,
    wish: NextClaim | None = None,
) -> Invocation[SettleAnswer]:
    """Store the outcome under the run's fence. The first outcome stands; repeats answer the same, with the same next
    call, and may change the marks.

    Args:
        raised: the exception that ended the attempt, for the history: ``{"type", "message"?, "file", "line"}``.
        wish: take the next call in the same step. Few pointers are looked at whose calls cannot be run now.
    """
    args = SettleArgs(
        *attempt_of(run),
        state=ending.state,
        result=ending.result,
        error=failure_json(ending.failure),
        marks=ending.marks,
        worker=run.worker,
        raised=raised_json(raised),
        next=[_next_args(wish)] if wish else [],
    )

    def read(reply: list[Any]) -> SettleAnswer:
        state = State(reply[1].decode()) if len(reply) > 1 else None
        told, due = (*reply[2:], None, None)[:2]
        return SettleAnswer(reply[0].decode(), state, _read_next(told, wish, run.worker), due)

    return invocation(space.root, args, read)


def _next_args(wish: NextClaim) -> NextClaimArgs:
    return NextClaimArgs(
        queue=wish.queue,
        token=wish.token,
        slot=wish.slot,
        lease_ms=wish.lease_ms,
        seen_fence=wish.seen_fence,
        bar_mutating=flag(wish.bar_mutating),
    )


def _read_next(told: list[Any] | None, wish: NextClaim | None, worker: str) -> Run | None:
    if told is None or wish is None:
        return None
    job, fence, fields = told
    return read_run(Delivery(job.decode(), wish.queue, wish.token, worker), fence, fields)
