"""Running a tool's ``reconcile`` where its handler runs, too: in a thread, on the event loop or in a process.

It runs under a time limit of its own: as long as its tool's run limit, at most five minutes. Whatever comes out of it
is an `End`. Knows no store.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Any

from ...store.model.errors import StoreMisuse
from ...store.operations.runs import Run
from ..execution.invoke import HandlerEntry, enter_reconcile
from ..execution.prepare import Ready
from ..execution.runners import OnLoop
from ..isolation.process_pool import ProcessPool
from ..tools.call import context_of
from ..tools.handler_result import End
from ..tools.options import Isolation
from ..tools.tool import Tool

NO_LIMIT_S, LONGEST_S = 60.0, 300.0
"""The limit of a reconcile whose tool has none, and the longest of all: the others of its tool wait meanwhile."""


def limit_s(tool: Tool) -> float:
    """Seconds that a reconcile may take."""
    return min(tool.spec.timeout_ms / 1000 or NO_LIMIT_S, LONGEST_S)


class Reconcilers:
    """The ways in which this process runs a reconcile."""

    def __init__(self, loop: OnLoop, processes: ProcessPool) -> None:
        self._loop = loop
        self._processes = processes

    def ask(self, ready: Ready, run: Run) -> End:
        """Ask, in this thread. At its limit an async one is cancelled, and one in a process is killed; a plain function
        in a thread cannot be stopped, and its caller has to go on without it."""
        tool, limit = ready.tool, limit_s(ready.tool)
        limit_at = time.monotonic() + limit
        entry = HandlerEntry(tool, ready.values, context_of(run, limit_at, _NothingToBegin(limit_at), ready.secrets))
        if tool.isolation is Isolation.PROCESS:
            return self._processes.reconcile(entry, ready.named)

        def wait(said: Awaitable[Any]) -> Any:
            try:
                return self._loop.wait_for(said, limit)
            except TimeoutError as error:
                raise TimeoutError(str(error) or f"no answer within {limit:g} s") from error

        return enter_reconcile(entry, wait)


class _NothingToBegin:
    """The call channel of a reconcile: it looks at what has ended; its time limit stands in place of a lease."""

    def __init__(self, limit_at: float) -> None:
        self._limit_at = limit_at

    def begin(self) -> str:
        raise StoreMisuse("a reconcile only looks: it has nothing to begin")

    def progress(self, fraction: float | None, message: str) -> bool:
        return self.standing() == "kept"

    def standing(self) -> str:
        return "kept" if time.monotonic() < self._limit_at else "lost"
