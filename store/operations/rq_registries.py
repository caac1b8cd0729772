"""RQ's registries of started, finished and failed jobs, as far as they are shown: a view that nothing is decided by.

RQ 3.0 keeps them as sorted sets beside its queues. They are written by a worker's heartbeat and not by the scripts of a
call, which would cost each call seven commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from ..model.keys import Namespace
from .operation import Invocation, invocation
from .script_arguments import Counted, Each, arguments_of, repeated

LISTED = 100
"""The newest settled calls that are shown at one heartbeat of one worker."""


class Standing(StrEnum):
    """How a run stands for the worker that shows it."""

    RUNNING = "running"
    SETTLED = "settled"
    OVER = "over"
    """Given back, given up or lost: whoever has moved the call has shown that, too."""


@repeated
class ShownRun(NamedTuple):
    """A run as RQ's registries know it."""

    job: str
    queue: str
    token: str
    how: Standing


@arguments_of("rq_view")
class RQViewArgs(NamedTuple):
    worker: str
    unlisted: Counted[str]
    runs: Each[ShownRun]


def show_runs(
    space: Namespace, worker: str, runs: Sequence[ShownRun], *, unlisted: Sequence[str] = ()
) -> Invocation[int]:
    """Bring RQ's registries to where these runs stand; how many are shown. The jobs of `unlisted` calls, which the
    worker has settled, are removed: RQ would forget them after a while as well."""
    return invocation(space.root, RQViewArgs(worker, unlisted, runs), int)
