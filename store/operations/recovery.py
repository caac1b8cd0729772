"""Recovery in bounded steps: expired leases, lost pointers, times that are due, retention, reconciles.

Each function is one script and may run in every worker at once: a step takes a bounded number of calls, and what one
sweep has repaired another does not find. `sweep` is the round that a worker makes; it never blocks new calls for longer
than one step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..model.keys import Namespace
from ..model.states import SETTLED, State
from ..model.times import milliseconds
from .claimed_run import Delivery, Run, read_run
from .operation import Invocation, invocation
from .script_arguments import Counted, Each, Flag, arguments_of, flag, repeated

STEP = 100
"""Calls that one step repairs: about 5 ms of Redis time, so that a claim waits no longer than for one fsync."""
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one step did: words to counts, for logs and metrics. `more` says that another step has work to do."""

    counts: dict[str, int]
    more: bool


@dataclass(frozen=True, slots=True)
class Retention:
    """How long settled calls are kept, ms: the body, and the tombstone that outlives it. Unknown never expires.

    Attributes:
        body_ms: arguments, result and history; `states` has other times for single states.
        tombstone_ms: counted from the same moment, when the call was settled.

    Raises:
        ValueError: one of them is not a time.
    """

    body_ms: int = 7 * DAY_MS
    tombstone_ms: int = 90 * DAY_MS
    states: Mapping[State, int] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        spans: dict[str, int] = {"body_ms": self.body_ms, "tombstone_ms": self.tombstone_ms}
        spans |= {f"of {state} calls": span for state, span in self.states.items()}
        for name, given in spans.items():
            milliseconds(f"retention: {name}", given)

    def body_of(self, state: State) -> int:
        """How long the bodies of this state are kept."""
        return self.states.get(state, self.body_ms)

    @property
    def shortest_ms(self) -> int:
        """The shortest time that any body is kept, milliseconds."""
        return min((self.body_ms, *self.states.values()))

    @property
    def longest_ms(self) -> int:
        """Of the bodies."""
        return max((self.body_ms, *self.states.values()))


@arguments_of("reclaim")
class ReclaimArgs(NamedTuple):
    most: int
    worker: str


@arguments_of("repush")
class RepushArgs(NamedTuple):
    queue: str
    grace_ms: int
    most: int


@repeated
class ServedArgs(NamedTuple):
    tool: str
    version: str
    others: Counted[str]


@arguments_of("adopt")
class AdoptArgs(NamedTuple):
    most: int
    queues: Counted[str]
    keys: Counted[str]
    served: Each[ServedArgs]


@arguments_of("tick")
class TickArgs(NamedTuple):
    most: int
    enough_replicas: Flag


@arguments_of("follow")
class FollowArgs(NamedTuple):
    most: int


@arguments_of("forget")
class ForgetArgs(NamedTuple):
    state: str
    body_ms: int
    tombstone_ms: int
    most: int


@arguments_of("purge")
class PurgeArgs(NamedTuple):
    calls: Each[str]


@arguments_of("reconcile")
class ReconcileArgs(NamedTuple):
    lease_ms: int
    tools: Each[str]


@arguments_of("reconcile_later")
class ReconcileLaterArgs(NamedTuple):
    call: str
    wait_ms: int
    heard: str
    counts: Flag


def reclaim(space: Namespace, worker: str, *, most: int = STEP) -> Invocation[StepResult]:
    """End leases that have run out; the tool's effect decides what becomes of the call. Where the server's clock went
    back, or another server has taken over, every lease is granted again first (``leases_given_anew``)."""

    def read(reply: list[int]) -> StepResult:
        counts = dict(zip(("requeued", "failed", "unknown", "cancelled"), reply, strict=False))
        if reply[5]:
            counts["leases_given_anew"] = reply[5]
        return StepResult(counts, reply[4] > 0)

    return invocation(space.root, ReclaimArgs(most=most, worker=worker), read)


def repush(space: Namespace, queue: str, *, grace_ms: int = 5_000, most: int = STEP) -> Invocation[StepResult]:
    """Push pointers again that were lost between the queue and a claim, after two looks a grace apart."""

    def read(reply: list[int]) -> StepResult:
        return StepResult({"repushed": reply[0]}, reply[1] == 1)

    return invocation(space.root, RepushArgs(queue=queue, grace_ms=grace_ms, most=most), read)


def adopt(
    space: Namespace,
    served: Sequence[tuple[str, str, Sequence[str]]],
    *,
    queues: Sequence[str],
    keys: Sequence[str] = (),
    most: int = STEP,
) -> Invocation[StepResult]:
    """Queue calls that were held because no worker had this (tool, version, other versions accepted); ``*`` accepts
    all. Only those in `queues`, and of the sealed ones those that one of `keys`, by id, opens: the others would come
    back at once."""
    serves = [ServedArgs(tool=tool, version=version, others=others) for tool, version, others in served]
    args = AdoptArgs(most=most, queues=queues, keys=keys, served=serves)
    return invocation(space.root, args, lambda reply: StepResult({"adopted": reply}, False))


def tick(
    space: Namespace, *, most: int = STEP, enough_replicas: bool = True
) -> Invocation[tuple[StepResult, int | None]]:
    """Apply every time that is due: delayed calls, deadlines, approvals. Also gives the ms until the next delayed call,
    None for none. With `enough_replicas`, mutating calls that wait for replicas are queued."""

    def read(reply: list[int]) -> tuple[StepResult, int | None]:
        *done, due = reply
        counts = dict(zip(("available", "expired", "approvals_expired", "woken", "parked"), done, strict=True))
        return StepResult(counts, max(done) >= most), None if due < 0 else due

    return invocation(space.root, TickArgs(most=most, enough_replicas=flag(enough_replicas)), read)


def follow(space: Namespace, *, most: int = STEP) -> Invocation[StepResult]:
    """Go on with calls that follow another one by a unique key, where they were too many for one script."""
    return invocation(space.root, FollowArgs(most), lambda reply: StepResult({"followed": reply[0]}, reply[1] == 1))


def forget(space: Namespace, state: State, keep: Retention, *, most: int = STEP) -> Invocation[StepResult]:
    """Retention of one settled state: bodies first, tombstones much later.

    Raises:
        ValueError: the state is an open one.
    """
    if state not in SETTLED:
        raise ValueError(f"{state} calls are open; they are never forgotten")

    def read(reply: list[int]) -> StepResult:
        return StepResult({"bodies_forgotten": reply[0], "tombstones_removed": reply[1]}, max(reply) >= most)

    args = ForgetArgs(state=state, body_ms=keep.body_of(state), tombstone_ms=keep.tombstone_ms, most=most)
    return invocation(space.root, args, read)


def purge(space: Namespace, calls: Sequence[str]) -> Invocation[tuple[str, ...]]:
    """Forget the bodies of these calls now, on an operator's word; tombstones stay, so that none of them runs again.
    Per call ``forgotten``, ``open`` (not settled, nothing done) or ``gone``."""
    return invocation(space.root, PurgeArgs(calls=calls), lambda reply: tuple(word.decode() for word in reply))


@dataclass(frozen=True, slots=True)
class ReconcileTask:
    """An unknown call whose tool is to be asked what happened.

    Attributes:
        asked: how often it was asked before.
        worker: whose attempt left it unknown.
        ended: the handler of that attempt is known to have ended.
        unknown_ms: for how long it has been unknown, by Redis time.
    """

    run: Run
    asked: int
    worker: str = ""
    ended: bool = False
    unknown_ms: int = 0


def reconcile(
    space: Namespace, tools: Sequence[str], *, lease_ms: int, worker: str
) -> Invocation[ReconcileTask | None]:
    """Hand out one unknown call of these tools; others leave it alone for `lease_ms`."""

    def read(reply: list[Any]) -> ReconcileTask | None:
        if not reply:
            return None
        call, fence, asked, told, attempted_by, ended, unknown_ms = reply
        run = read_run(Delivery(call.decode(), "", "", worker), fence, told)
        return ReconcileTask(run, asked, attempted_by.decode(), ended == 1, unknown_ms)

    return invocation(space.root, ReconcileArgs(lease_ms=lease_ms, tools=tools), read)


def reconcile_later(space: Namespace, call: str, *, wait_ms: int, heard: str, counts: bool = True) -> Invocation[bool]:
    """A reconcile gave no answer; ask again after a wait. Where it was too early to ask at all, it does not count and
    is no line of the history. False where the call is unknown no longer."""
    args = ReconcileLaterArgs(call=call, wait_ms=wait_ms, heard=heard, counts=flag(counts))
    return invocation(space.root, args, lambda reply: reply == 1)


def steps(
    space: Namespace, queues: Sequence[str], worker: str, *, grace_ms: int, enough_replicas: bool = True
) -> Iterator[Invocation[Any]]:
    """One round of a worker's sweep, cheapest and most urgent first. Retention has a slower round of its own."""
    yield reclaim(space, worker)
    for queue in queues:
        yield repush(space, queue, grace_ms=grace_ms)
    yield tick(space, enough_replicas=enough_replicas)
    yield follow(space)
