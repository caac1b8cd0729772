"""The highest fence that a process has seen, by which it notices a store that has lost writes.

The store flags itself then, and holds mutating calls until a person accepts the loss. Workers, harnesses and inbox
consumers each keep the highest fence; with nobody alive who has seen a higher one, nobody can notice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..model.keys import Namespace
from ..model.outcomes import Outcome
from ..model.states import State
from .operation import Invocation, invocation
from .script_arguments import Each, arguments_of, repeated

_FINAL = frozenset({State.SUCCEEDED, State.REFUSED, State.CANCELLED, State.EXPIRED})
"""Nothing leads out of these; a failed call may be retried."""


@repeated
class KnownArgs(NamedTuple):
    call: str
    state: str
    fence: int


@arguments_of("fence_watermark")
class FenceWatermarkArgs(NamedTuple):
    seen_fence: int
    known: Each[KnownArgs]


class FenceWatermark:
    """The highest fence of one namespace that was seen. It only rises. Any thread may raise it: of two at once the
    higher one is seen again a moment later."""

    def __init__(self) -> None:
        self.seen = 0

    def note(self, fence: int) -> None:
        """This fence was seen."""
        self.seen = max(self.seen, fence)

    def note_all(self, outcomes: Iterable[Outcome | None]) -> None:
        """The fences of these outcomes were seen; a conflict tells of another call, whose fence counts as well. One
        that is not durable does not: a failover may forget it."""
        for outcome in outcomes:
            if outcome is not None and outcome.is_durable:
                self.note(outcome.fence)


def fence_watermark(space: Namespace, seen: int, known: Sequence[Outcome] = ()) -> Invocation[int]:
    """Compare the highest fence this process has seen, and what it was told of these calls, with what the server
    knows; the higher fence of the two. A server that knows less has lost writes, and holds mutating calls from then
    on. A record that retention has removed, or whose loss a person has accepted, is no such proof."""
    told = [KnownArgs(call=outcome.key, state=outcome.state or "", fence=outcome.fence) for outcome in known]
    return invocation(space.root, FenceWatermarkArgs(seen_fence=seen, known=told), int)


def contradicted(told: Outcome, now: Outcome | None) -> bool:
    """Whether the store's answer about a call is older than what was told of it before, or missing."""
    if not told.is_durable:
        return False  # a failover may have forgotten it
    if now is None or now.fence < told.fence:
        return True
    return told.state in _FINAL and now.state is not told.state
