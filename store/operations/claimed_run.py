"""The right to run a call, as a worker gets it, and how it is read from what the scripts tell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from ..model.identity import idempotency_key
from ..model.record import ToldRun
from ..model.specs import Effect
from .pointers import call_of
from .script_arguments import repeated

_FORGETTABLE = "~"
_EFFECTS = {effect.value: effect for effect in Effect}


@dataclass(frozen=True, slots=True)
class Delivery:
    """One arrival of a pointer at a worker. The token is new for each delivery, never the worker's name."""

    job_id: str
    queue: str
    token: str
    worker: str

    @property
    def call(self) -> str:
        return call_of(self.job_id)

    @property
    def forgettable(self) -> Delivery:
        """The same arrival, claimed while too few replicas answer: that a failover forgets its claim proves nothing."""
        return replace(self, token=f"{self.token}{_FORGETTABLE}")


@dataclass(frozen=True, slots=True)
class NextClaim:
    """The wish to take the next call of a queue together with the end of the call before.

    Attributes:
        token: new for each wish, as that of a delivery.
        slot: the name of the slot that asks, unique among all workers; it asks for one call at a time.
        seen_fence, bar_mutating: as for `runs.claim`.
    """

    queue: str
    token: str
    slot: str
    lease_ms: int
    seen_fence: int = 0
    bar_mutating: bool = False

    @property
    def barred(self) -> NextClaim:
        """The same wish while too few replicas answer: for no mutating call, and forgettable as `Delivery` has it."""
        return replace(self, token=f"{self.token}{_FORGETTABLE}", bar_mutating=True)


@dataclass(frozen=True, slots=True)
class NotRun:
    """Why a claimed pointer gives no run: ``settled``, ``busy``, ``held``, ``parked``, ``unknown`` or ``gone``.

    Attributes:
        due_ms: of a call over its tool's rate, when the next one may start; None where that does not depend on time.
    """

    why: str
    detail: str = ""
    due_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """The right to run a call, under a fence, until the lease ends or is renewed.

    Attributes:
        arguments: JSON text as admitted (encrypted where `secret`).
        deadline_at: ms of Redis time, None for none.
        claimed_at: ms of Redis time; with the deadline it gives the time left, whatever this machine's clock says.
        approved: a person has decided that this run may be; that it is not a repeat is another question.
        key_id: of the key that sealed its secret fields.
        ran_before: an attempt before may have had its effect although the call is mutating: someone let it run again,
            or it was not mutating then.
        not_started: attempts before that ended in `NotStarted`; each has raised `attempt_limit` by one.
    """

    call: str
    fence: int
    token: str
    worker: str
    tool: str
    version: str
    kind: str
    arguments: str
    idempotency_key: str
    scope: str
    tenant: str
    turn_id: str
    call_id: str | None
    position: int
    effect: Effect
    begins: bool
    attempt: int
    attempt_limit: int
    deadline_at: int | None
    secret: bool
    cancel_requested: bool
    trace: str = ""
    claimed_at: int = 0
    approved: bool = False
    key_id: str = ""
    ran_before: bool = False
    not_started: int = 0
    queue: str = "default"

    @property
    def is_forgettable(self) -> bool:
        """Claimed while too few replicas answered."""
        return self.token.endswith(_FORGETTABLE)


def read_run(taken: Delivery, fence: int, reply: list[bytes | None]) -> Run:
    """The run of the call that was taken, from the fields that a worker is told, in the order of `ToldRun`."""
    told = ToldRun._make([None if value is None else value.decode() for value in reply])
    return Run(
        call=taken.call,
        fence=fence,
        token=taken.token,
        worker=taken.worker,
        tool=told.tool or "",
        version=told.version or "",
        kind=told.kind or "function",
        arguments=told.args or "{}",
        idempotency_key=idempotency_key(taken.call, told.fp or ""),
        scope=told.scope or "",
        tenant=told.tenant or "",
        turn_id=told.turn or "",
        call_id=told.call_id,
        position=int(told.position or 0),
        effect=_EFFECTS[told.effect or Effect.MUTATING],
        begins=told.begins == "1",
        attempt=int(told.attempt or 0),
        attempt_limit=int(told.attempt_limit or 0),
        deadline_at=int(told.deadline_at) if told.deadline_at else None,
        secret=told.secret == "1",  # noqa: S105
        cancel_requested=told.cancel_requested == "1",
        trace=told.trace or "",
        claimed_at=int(told.claimed_at or 0),
        approved=told.approved == "1",
        key_id=told.kid or "",
        ran_before=told.ran_before == "1",
        not_started=int(told.not_started or 0),
        queue=taken.queue,
    )


@repeated
class AttemptArgs(NamedTuple):
    """Which attempt speaks. Not by its fence alone: a server that has lost writes gives fences out a second time."""

    call: str
    fence: int
    token: str


def attempt_of(run: Run) -> AttemptArgs:
    """The attempt that this run is."""
    return AttemptArgs(call=run.call, fence=run.fence, token=run.token)
