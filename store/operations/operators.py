"""What people may do to a call: cancel, approve, deny, resolve, retry. Also the answer of a tool's reconcile.

Each is a compare-and-set on the (state, fence) that was seen, with actor and reason for the history, and a request id
whose answer is kept for a day: a repeated request is answered, not done again. Of two operators one wins, and the
other is told what is true now.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple
from uuid import uuid4

from ..model.keys import Namespace
from ..model.outcomes import Failure, Outcome
from ..model.plain import whole_text
from ..model.states import Operation, State
from .operation import Invocation, invocation, text
from .outcome_codec import failure_json
from .pointers import job_fields
from .script_arguments import Counted, arguments_of


@dataclass(frozen=True, slots=True)
class Actor:
    """Who decides, why, and under which request id; without one of the caller's each request gets its own."""

    actor: str
    reason: str = ""
    request_id: str = field(default_factory=lambda: uuid4().hex)

    def __post_init__(self) -> None:
        for name in ("actor", "reason", "request_id"):  # from a command line they may be bytes that are no UTF-8
            object.__setattr__(self, name, whole_text(getattr(self, name)))


class ExpectedArgs(NamedTuple):
    """What stands first in the arguments of most scripts here."""

    call: str
    state: str
    fence: str


@dataclass(frozen=True, slots=True)
class Expected:
    """The call as the operator saw it; the fence None means any."""

    call: str
    state: State | None = None
    fence: int | None = None

    @property
    def args(self) -> ExpectedArgs:
        fence = "" if self.fence is None else str(self.fence)
        return ExpectedArgs(call=self.call, state=self.state or "", fence=fence)


@dataclass(frozen=True, slots=True)
class Question:
    """What a person was shown who decides: why the call is held (``approval`` or ``duplicate``), under which fence."""

    reason: str
    fence: int

    @classmethod
    def of(cls, outcome: Outcome) -> Question | None:
        """The question that an outcome shows, if it shows one."""
        reason = outcome.marks.get("reason") if outcome.state is State.HELD else None
        asks = reason in ("approval", "duplicate") and "follows" not in outcome.marks
        return cls(reason, outcome.fence) if asks and reason else None


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of an operation: ``verdict`` is the first word of the script's reply; for ``changed`` the state and
    fence that are true now; for ``decided`` who decided; for ``taken`` key and state of the call that has the unique
    key."""

    verdict: str
    detail: str = ""
    more: str = ""

    @property
    def refused(self) -> bool:
        """Whether the store did not do what was asked."""
        return self.verdict in {"changed", "gone", "mismatch", "late", "decided", "taken"}


@arguments_of("cancel")
class CancelArgs(NamedTuple):
    call: str
    state: str
    fence: str
    actor: str
    reason: str
    request_id: str


@arguments_of("decide")
class DecideArgs(NamedTuple):
    call: str
    idempotency_key: str
    decision: Literal["approve", "deny"]
    actor: str
    reason: str
    request_id: str
    shown_reason: str
    shown_fence: int | Literal[""]


@arguments_of("resolve")
class ResolveArgs(NamedTuple):
    call: str
    state: str
    fence: str
    operation: str
    verdict: str
    result: str
    error: str
    actor: str
    reason: str
    request_id: str


@arguments_of("retry")
class RetryArgs(NamedTuple):
    call: str
    state: str
    fence: str
    operation: str
    actor: str
    reason: str
    request_id: str
    job: Counted[str | bytes]


@arguments_of("accept_call")
class AcceptCallArgs(NamedTuple):
    call: str
    state: str
    fence: str
    actor: str
    reason: str
    request_id: str


@arguments_of("accept_loss")
class AcceptLossArgs(NamedTuple):
    actor: str
    reason: str
    most: int


def _read(reply: list[Any]) -> Decision:
    words = [text(part) if isinstance(part, bytes) else str(part) for part in reply]
    return Decision(*(word or "" for word in words))


def cancel(space: Namespace, expected: Expected, by: Actor) -> Invocation[Decision]:
    """``cancelled`` before start (effects 0), or ``requested`` for one that runs: its outcome is not known yet."""
    args = CancelArgs(*expected.args, actor=by.actor, reason=by.reason, request_id=by.request_id)
    return invocation(space.root, args, _read)


def approve(
    space: Namespace, call: str, idempotency_key: str, by: Actor, *, shown: Question | None = None
) -> Invocation[Decision]:
    """Answer the question for which a call is held, so that it goes on; ``idempotency_key`` is the one that was shown.

    A call may have to be asked about twice: is it a repeat, and may it run? Each answer counts for one of these and
    for one run, its automatic attempts included; a run that `retry` queues is another one, and is asked about again.

    Args:
        shown: the answer counts for this question only; None for the one that is open now.
    """
    return _decide(space, "approve", (call, idempotency_key), by, shown)


def deny(
    space: Namespace, call: str, idempotency_key: str, by: Actor, *, shown: Question | None = None
) -> Invocation[Decision]:
    """Refuse a call that is held for approval or as a duplicate; see `approve`."""
    return _decide(space, "deny", (call, idempotency_key), by, shown)


def _decide(
    space: Namespace,
    decision: Literal["approve", "deny"],
    about: tuple[str, str],
    by: Actor,
    shown: Question | None,
) -> Invocation[Decision]:
    call, idempotency_key = about
    args = DecideArgs(
        call=call,
        idempotency_key=idempotency_key,
        decision=decision,
        actor=by.actor,
        reason=by.reason,
        request_id=by.request_id,
        shown_reason=shown.reason if shown else "",
        shown_fence=shown.fence if shown else "",
    )
    return invocation(space.root, args, _read)


def resolve(
    space: Namespace,
    expected: Expected,
    verdict: str | Failure,
    by: Actor,
    *,
    operation: Operation = Operation.RESOLVE,
) -> Invocation[Decision]:
    """Settle an unknown call, or one that is held since the store went back: with the JSON text of the value it had (it
    happened), or with a failure (it did not).

    A later contradicting outcome is kept as evidence and overwrites nothing.
    """
    failed = isinstance(verdict, Failure)
    state = State.FAILED if failed else State.SUCCEEDED
    result = "" if isinstance(verdict, Failure) else verdict
    error = failure_json(verdict) if isinstance(verdict, Failure) else ""
    args = ResolveArgs(
        *expected.args,
        operation=operation,
        verdict=state,
        result=result,
        error=error,
        actor=by.actor,
        reason=by.reason,
        request_id=by.request_id,
    )
    return invocation(space.root, args, _read)


def retry(
    space: Namespace, expected: Expected, by: Actor, *, operation: Operation = Operation.RETRY
) -> Invocation[Decision]:
    """Queue a failed or unknown call again, by an operator's decision; attempts and deadline start again. What was
    approved was
    the run before: where its tool asks, a person is asked again; ``held`` says that this person is asked at once."""
    args = RetryArgs(
        *expected.args,
        operation=operation,
        actor=by.actor,
        reason=by.reason,
        request_id=by.request_id,
        job=job_fields(),
    )
    return invocation(space.root, args, _read)


def accept_call(space: Namespace, expected: Expected, by: Actor) -> Invocation[Decision]:
    """Let one call run that is held since the store went back, after an operator has compared: ``freed``. The
    flag stands, and other calls stay held."""
    args = AcceptCallArgs(*expected.args, actor=by.actor, reason=by.reason, request_id=by.request_id)
    return invocation(space.root, args, _read)


def accept_loss(space: Namespace, by: Actor, *, most: int = 500) -> Invocation[tuple[bool, int, int]]:
    """After a step back of the store: (the flag stood, calls freed now, calls still held); repeat until none is."""
    args = AcceptLossArgs(actor=by.actor, reason=by.reason, most=most)
    return invocation(space.root, args, lambda reply: (reply[0] == 1, reply[1], reply[2]))
