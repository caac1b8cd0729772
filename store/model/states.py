"""The states of a call and the one table of how a call may move between them.

Rules of this file: every change of state anywhere in the project is a row here, and every row is a thing that some
Lua script does; a test drives each row, and each move that is not a row, through the scripts on a real server.
The table is data: pure, no Redis, no clock.

Theory. A call is *open* (held, queued, running, unknown) or *settled* (succeeded, failed, refused, cancelled,
expired). Counters keep ``admitted = settled + open`` because each move changes them in the script that makes it.

- Only a claim leads into running, and only under a new fence. What leaves running does so under that fence, or
  because the lease of that fence is gone.
- ``unknown`` means: the handler was entered and nobody knows how it ended. No timer leads out of it: only the late
  settle of the same fence, the tool's `reconcile`, or an operator.
- held is left by resolve only where the store went back: the call may have run in moments that the store has lost.
- Not in the table: conflict (`NotStored`). It is an answer to a submission, and changes no record.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class State(StrEnum):
    """Where a call stands."""

    HELD = "held"
    """Admitted, waiting for something other than a worker: see the reason. Moved on by approve, deny, release."""
    QUEUED = "queued"
    """Waiting for a worker, perhaps not before a time, or for the end of a pause. Moved on by a worker's claim."""
    RUNNING = "running"
    """Claimed under a fence whose lease is renewed. Moved on by the worker, or by recovery once the lease is gone."""
    UNKNOWN = "unknown"
    """Entered, not known to have ended. Moved on by a late settle, a reconcile or an operator; never by a timer."""
    SUCCEEDED = "succeeded"
    """Settled: the handler's value is stored."""
    FAILED = "failed"
    """Settled: the handler, or the rules of its tool, said that it failed. An operator may retry it."""
    REFUSED = "refused"
    """Settled before an attempt, for good: invalid arguments, unknown tool, denied, or a hook said no."""
    CANCELLED = "cancelled"
    """Settled while it waited to run, because someone asked. Attempts before it waited are counted and told of."""
    EXPIRED = "expired"
    """Settled while it waited to run, because a deadline or an approval's lifetime passed; as for cancelled."""

    @property
    def is_settled(self) -> bool:
        return self not in OPEN


class NotStored(StrEnum):
    """What stands in an outcome in the place of a state, but is an answer to a submission: no record is ever in it."""

    CONFLICT = "conflict"
    """The call was asked for before with another tool or other arguments; it is not run, and the first one stands."""

    @property
    def is_settled(self) -> bool:
        return True


OPEN = frozenset({State.HELD, State.QUEUED, State.RUNNING, State.UNKNOWN})
SETTLED = frozenset(State) - OPEN


class Operation(StrEnum):
    """What moves a call. Each is one Lua script, or one branch of ``recover`` or ``claim``."""

    ADMIT = "admit"
    APPROVE = "approve"
    DENY = "deny"
    FREE = "free"
    """A held call's reason is gone (order, duplicate, no_worker, store_went_back). Of one that followed
    another by a unique key: that one ended without an effect."""
    CANCEL = "cancel"
    EXPIRE = "expire"
    CLAIM = "claim"
    SETTLE = "settle"
    RELEASE = "release"
    """The worker gives an un-entered call back."""
    RETRY_LATER = "retry_later"
    """The attempt ended in a way that may run again: NotStarted, or a transient failure of read/idempotent."""
    LOSE = "lose"
    """The lease is gone, or the worker was interrupted: recovery decides by the tool's effect."""
    RESOLVE = "resolve"
    RECONCILE = "reconcile"
    RETRY = "retry"
    FOLLOW = "follow"
    """The call that has the unique key is at rest: one that follows it gets its outcome."""


class Transition(NamedTuple):
    """One permitted move. ``source`` is None for admission."""

    source: State | None
    operation: Operation
    target: State


_S = State
_O = Operation

TABLE: frozenset[Transition] = frozenset(
    Transition(source, operation, target)
    for source, operation, targets in (
        (None, _O.ADMIT, (_S.QUEUED, _S.HELD, _S.REFUSED)),
        (_S.HELD, _O.APPROVE, (_S.QUEUED,)),
        (_S.HELD, _O.FREE, (_S.QUEUED,)),
        (_S.HELD, _O.DENY, (_S.REFUSED,)),
        (_S.HELD, _O.FREE, (_S.REFUSED,)),
        (_S.HELD, _O.RESOLVE, (_S.SUCCEEDED, _S.FAILED)),
        (_S.HELD, _O.FOLLOW, (_S.SUCCEEDED, _S.FAILED)),
        (_S.HELD, _O.CANCEL, (_S.CANCELLED,)),
        (_S.HELD, _O.EXPIRE, (_S.EXPIRED,)),
        (_S.QUEUED, _O.CLAIM, (_S.RUNNING, _S.HELD)),
        (_S.QUEUED, _O.CANCEL, (_S.CANCELLED,)),
        (_S.QUEUED, _O.EXPIRE, (_S.EXPIRED,)),
        (_S.RUNNING, _O.SETTLE, (_S.SUCCEEDED, _S.FAILED, _S.REFUSED, _S.UNKNOWN)),
        (_S.RUNNING, _O.RELEASE, (_S.QUEUED, _S.HELD)),
        (_S.RUNNING, _O.RETRY_LATER, (_S.QUEUED,)),
        (_S.RUNNING, _O.LOSE, (_S.QUEUED, _S.FAILED, _S.UNKNOWN)),
        (_S.UNKNOWN, _O.SETTLE, (_S.SUCCEEDED, _S.FAILED)),
        (_S.UNKNOWN, _O.RECONCILE, (_S.SUCCEEDED, _S.FAILED, _S.QUEUED)),
        (_S.UNKNOWN, _O.RESOLVE, (_S.SUCCEEDED, _S.FAILED)),
        (_S.UNKNOWN, _O.RETRY, (_S.QUEUED,)),
        (_S.FAILED, _O.RETRY, (_S.QUEUED,)),
        (_S.QUEUED, _O.SETTLE, (_S.SUCCEEDED,)),
    )
    for target in targets
)


def targets(source: State | None, operation: Operation) -> frozenset[State]:
    """The states that an operation may lead to; empty means that the operation is refused in that state."""
    return frozenset(row.target for row in TABLE if row.source is source and row.operation is operation)
