"""What a worker says about a call it has taken: claim, renew, declare, begin, settle, release, interrupt.

Each function is one atomic script on Redis time. All but claim are accepted while state and fence still match, even
past the lease; none can overwrite what a successor, or an operator, has written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..model.keys import Namespace
from ..model.outcomes import Failure
from ..model.states import State
from .claimed_run import Run as Run
from .claimed_run import read_run
from .operation import Arg, Invocation, load
from .outcome_codec import failure_json
from .pointers import call_of


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
        return replace(self, token=f"{self.token}~")


@dataclass(frozen=True, slots=True)
class NotRun:
    """Why a claimed pointer gives no run: ``settled``, ``busy``, ``held``, ``parked``, ``unknown`` or ``gone``."""

    why: str
    detail: str = ""


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
    asked = (delivery.call, delivery.job_id, delivery.queue, delivery.token, delivery.worker)
    args = (*asked, lease_ms, seen_fence, int(bar_mutating))

    def read(reply: list[Any]) -> Run | NotRun:
        if reply[0] == b"run":
            return read_run(delivery.call, reply[1], reply[2], token=delivery.token, worker=delivery.worker)
        detail = reply[1] if len(reply) > 1 else b""
        return NotRun(reply[0].decode(), detail.decode() if isinstance(detail, bytes) else str(detail))

    return Invocation(load("claim"), space.root, args, read)


def _who(run: Run) -> tuple[Arg, ...]:
    """Which attempt speaks. Not by its fence alone: a server that has lost writes gives fences out a second time."""
    return run.call, run.fence, run.token


def renew(space: Namespace, runs: Sequence[Run], *, lease_ms: int) -> Invocation[tuple[str, ...]]:
    """Prolong the leases of these runs; per run ``kept``, ``cancel`` (kept, a stop was asked for) or
    ``lost``. Harmless when repeated."""
    args: list[Arg] = [lease_ms]
    for run in runs:
        args += _who(run)
    return Invocation(load("renew"), space.root, tuple(args), lambda reply: tuple(word.decode() for word in reply))


def begin(space: Namespace, run: Run) -> Invocation[str]:
    """Write that the effect may start from here on: ``begun``, ``cancel`` (nothing written) or ``lost``."""
    return Invocation(load("begin"), space.root, _who(run), lambda reply: reply.decode())


def declare(space: Namespace, run: Run) -> Invocation[str]:
    """Write the run's effect and `begins` into its record, before its handler is entered: ``declared`` or ``lost``.
    For a tool that has become stricter since the call was admitted."""
    args = (*_who(run), run.effect, int(run.begins))
    return Invocation(load("declare"), space.root, args, lambda reply: reply.decode())


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
    the call is in now."""

    verdict: str
    state: State | None = field(default=None)


def settle(
    space: Namespace, run: Run, ending: Ending, *, raised: Mapping[str, Any] | None = None
) -> Invocation[SettleAnswer]:
    """Store the outcome under the run's fence. The first outcome stands; repeats answer the same, and
    may change the marks.

    Args:
        raised: the exception that ended the attempt, for the history: ``{"type", "message"?, "file", "line"}``.
    """
    how = (ending.state, ending.result, failure_json(ending.failure), ending.marks)
    args = (*_who(run), *how, run.worker, _raised_json(raised))

    def read(reply: list[bytes]) -> SettleAnswer:
        return SettleAnswer(reply[0].decode(), State(reply[1].decode()) if len(reply) > 1 else None)

    return Invocation(load("settle"), space.root, args, read)


def release(space: Namespace, run: Run, *, held: str = "", approval_ms: int = 0) -> Invocation[str]:
    """Give an un-entered call back, to the queue or held for a reason; the attempt does not count. The new state, or
    "lost". Held for ``approval``, it waits for a person for `approval_ms`; for ``replicas`` it is queued, and waits
    until enough of them answer."""
    return _release(space, run, ("release", approval_ms, held, ""))


def retry_later(
    space: Namespace, run: Run, *, delay_ms: int, failure: Failure, raised: Mapping[str, Any] | None = None
) -> Invocation[str]:
    """Queue the call for another attempt after a wait; no lease is held meanwhile. The new state, or "lost".

    `raised` is `settle`'s."""
    return _release(space, run, ("retry_later", delay_ms, "", failure_json(failure)), _raised_json(raised))


def retry_not_started(
    space: Namespace, run: Run, *, delay_ms: int, failure: Failure, raised: Mapping[str, Any] | None = None
) -> Invocation[str]:
    """The same after an attempt in which nothing has started: it does not count. Equal ends in a row are one
    line of the history."""
    return _release(
        space, run, ("retry_later", delay_ms, "", failure_json(failure)), _raised_json(raised), counts=False
    )


def _raised_json(raised: Mapping[str, Any] | None) -> str:
    return json.dumps(raised) if raised else ""


def _release(
    space: Namespace, run: Run, how: tuple[Arg, ...], raised: str = "", *, counts: bool = True
) -> Invocation[str]:
    """`how`: operation, wait in ms, held reason, error JSON."""
    args = (*_who(run), *how, run.worker, raised, int(counts))

    def read(reply: list[bytes]) -> str:
        return reply[1].decode() if reply[0] == b"released" else "lost"

    return Invocation(load("release"), space.root, args, read)


def interrupt(space: Namespace, run: Run, *, reason: str, inside_ms: int = 0) -> Invocation[str]:
    """Give up an attempt that was entered; by its effect the call becomes ``queued``, ``failed`` or ``unknown``, else
    ``lost``. Where its handler is still at work, no reconcile asks for `inside_ms`; see `defer_reconcile`."""
    args = (*_who(run), reason, run.worker, inside_ms)
    return Invocation(load("interrupt"), space.root, args, lambda reply: reply[0].decode())


def defer_reconcile(space: Namespace, runs: Sequence[Run], *, wait_ms: int) -> Invocation[int]:
    """The handlers of these runs, which were given up, are still at work: their reconciles wait at least so long."""
    args: list[Arg] = [wait_ms]
    for run in runs:
        args += _who(run)
    return Invocation(load("defer_reconcile"), space.root, tuple(args), int)


def progress(space: Namespace, run: Run, fraction: float | None, message: str) -> Invocation[bool]:
    """Report how far a running call is; False where the lease is lost."""
    args = (*_who(run), "" if fraction is None else fraction, message)
    return Invocation(load("progress"), space.root, args, lambda reply: reply == b"noted")
