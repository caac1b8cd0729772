"""The operations of a worker on a call: claim, renew, declare, begin, release, interrupt. (`settling`: settle.)

Each function is one atomic script on Redis time. All but claim are accepted while state and fence still match, even
past the lease; none can overwrite what a successor, or an operator, has written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..model.keys import Namespace
from ..model.outcomes import Failure
from .claimed_run import AttemptArgs as AttemptArgs
from .claimed_run import Delivery as Delivery
from .claimed_run import NextClaim as NextClaim
from .claimed_run import NotRun as NotRun
from .claimed_run import Run as Run
from .claimed_run import attempt_of, read_run
from .operation import Invocation, invocation
from .outcome_codec import failure_json, raised_json
from .script_arguments import Each, Flag, arguments_of, flag
from .settling import Ending as Ending
from .settling import SettleAnswer as SettleAnswer
from .settling import settle as settle


@arguments_of("claim")
class ClaimArgs(NamedTuple):
    job_id: str
    queue: str
    token: str
    worker: str
    lease_ms: int
    seen_fence: int
    bar_mutating: Flag


def claim(
    space: Namespace, delivery: Delivery, *, lease_ms: int, seen_fence: int = 0, bar_mutating: bool = False
) -> Invocation[Run | NotRun]:
    """Take the right to run the call that a pointer names.

    Sent again after a lost reply, the same delivery gets its own claim again. `seen_fence` is the highest fence this
    process knows; a store that knows less has lost writes, and holds mutating calls from then on. With `bar_mutating` a
    mutating call is not taken and waits until enough replicas answer (``parked``, ``replicas``).

    Raises:
        ValueError: the lease is not positive.
    """
    if lease_ms <= 0:
        raise ValueError(f"a lease of {lease_ms} ms protects nothing; use a positive number")
    args = ClaimArgs(
        job_id=delivery.job_id,
        queue=delivery.queue,
        token=delivery.token,
        worker=delivery.worker,
        lease_ms=lease_ms,
        seen_fence=seen_fence,
        bar_mutating=flag(bar_mutating),
    )

    def read(reply: list[Any]) -> Run | NotRun:
        if reply[0] == b"run":
            return read_run(delivery, reply[1], reply[2])
        detail = reply[1] if len(reply) > 1 else b""
        due = reply[2] if len(reply) > 2 and reply[2] >= 0 else None
        return NotRun(reply[0].decode(), detail.decode() if isinstance(detail, bytes) else str(detail), due)

    return invocation(space.root, args, read)


@arguments_of("renew")
class RenewArgs(NamedTuple):
    lease_ms: int
    attempts: Each[AttemptArgs]


def renew(space: Namespace, runs: Sequence[Run], *, lease_ms: int) -> Invocation[tuple[str, ...]]:
    """Prolong the leases of these runs; per run ``kept``, ``cancel`` (kept, a stop was asked for) or
    ``lost``. Harmless when repeated."""
    args = RenewArgs(lease_ms=lease_ms, attempts=[attempt_of(run) for run in runs])
    return invocation(space.root, args, lambda reply: tuple(word.decode() for word in reply))


@arguments_of("begin")
class BeginArgs(NamedTuple):
    call: str
    fence: int
    token: str


def begin(space: Namespace, run: Run) -> Invocation[str]:
    """Write that the effect may start from here on: ``begun``, ``cancel`` (nothing written) or ``lost``."""
    return invocation(space.root, BeginArgs(*attempt_of(run)), lambda reply: reply.decode())


@arguments_of("declare")
class DeclareArgs(NamedTuple):
    call: str
    fence: int
    token: str
    effect: str
    begins: Flag


def declare(space: Namespace, run: Run) -> Invocation[str]:
    """Write the run's effect and `begins` into its record, before its handler is entered: ``declared`` or ``lost``.
    For a tool that has become stricter since the call was admitted."""
    args = DeclareArgs(*attempt_of(run), effect=run.effect, begins=flag(run.begins))
    return invocation(space.root, args, lambda reply: reply.decode())


@arguments_of("release")
class ReleaseArgs(NamedTuple):
    call: str
    fence: int
    token: str
    operation: Literal["release", "retry_later"]
    wait_ms: int
    held: str
    error: str
    worker: str
    raised: str
    counts: Flag


def release(space: Namespace, run: Run, *, held: str = "", approval_ms: int = 0) -> Invocation[str]:
    """Give an un-entered call back, to the queue or held for a reason; the attempt does not count. The new state, or
    "lost". Held for ``approval``, it waits for a person for `approval_ms`; for ``replicas`` it is queued, and waits
    until enough of them answer."""
    args = ReleaseArgs(
        *attempt_of(run),
        operation="release",
        wait_ms=approval_ms,
        held=held,
        error="",
        worker=run.worker,
        raised="",
        counts=flag(True),
    )
    return invocation(space.root, args, _read_release)


def retry_later(
    space: Namespace, run: Run, *, delay_ms: int, failure: Failure, raised: Mapping[str, Any] | None = None
) -> Invocation[str]:
    """Queue the call for another attempt after a wait; no lease is held meanwhile. The new state, or "lost".

    `raised` is `settle`'s."""
    return invocation(space.root, _again(run, delay_ms, failure, raised, counts=True), _read_release)


def retry_not_started(
    space: Namespace, run: Run, *, delay_ms: int, failure: Failure, raised: Mapping[str, Any] | None = None
) -> Invocation[str]:
    """The same after an attempt in which nothing has started: it does not count. Equal ends in a row are one
    line of the history."""
    return invocation(space.root, _again(run, delay_ms, failure, raised, counts=False), _read_release)


def _again(run: Run, delay_ms: int, failure: Failure, raised: Mapping[str, Any] | None, *, counts: bool) -> ReleaseArgs:
    return ReleaseArgs(
        *attempt_of(run),
        operation="retry_later",
        wait_ms=delay_ms,
        held="",
        error=failure_json(failure),
        worker=run.worker,
        raised=raised_json(raised),
        counts=flag(counts),
    )


def _read_release(reply: list[bytes]) -> str:
    return reply[1].decode() if reply[0] == b"released" else "lost"


@arguments_of("interrupt")
class InterruptArgs(NamedTuple):
    call: str
    fence: int
    token: str
    reason: str
    worker: str
    inside_ms: int


def interrupt(space: Namespace, run: Run, *, reason: str, inside_ms: int = 0) -> Invocation[str]:
    """Give up an attempt that was entered; by its effect the call becomes ``queued``, ``failed`` or ``unknown``, else
    ``lost``. Where its handler is still at work, no reconcile asks for `inside_ms`; see `defer_reconcile`."""
    args = InterruptArgs(*attempt_of(run), reason=reason, worker=run.worker, inside_ms=inside_ms)
    return invocation(space.root, args, lambda reply: reply[0].decode())


@arguments_of("defer_reconcile")
class DeferReconcileArgs(NamedTuple):
    wait_ms: int
    attempts: Each[AttemptArgs]


def defer_reconcile(space: Namespace, runs: Sequence[Run], *, wait_ms: int) -> Invocation[int]:
    """The handlers of these runs, which were given up, are still at work: their reconciles wait at least so long."""
    return invocation(space.root, DeferReconcileArgs(wait_ms=wait_ms, attempts=[attempt_of(run) for run in runs]), int)


@arguments_of("progress")
class ProgressArgs(NamedTuple):
    call: str
    fence: int
    token: str
    fraction: float | Literal[""]
    message: str


def progress(space: Namespace, run: Run, fraction: float | None, message: str) -> Invocation[bool]:
    """Report how far a running call is; False where the lease is lost."""
    args = ProgressArgs(*attempt_of(run), fraction="" if fraction is None else fraction, message=message)
    return invocation(space.root, args, lambda reply: reply == b"noted")
