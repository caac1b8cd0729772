"""The run that this thread or task works on, for log lines. Set by the executor, read by the loggers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ...store.operations.runs import Run

RUN: ContextVar[Run | None] = ContextVar("toolonce_run", default=None)


def facts(run: Run) -> dict[str, Any]:
    """What a log line says about a run; no arguments."""
    return {
        "call": run.call, "tool": run.tool, "turn": run.turn_id, "scope": run.scope, "fence": run.fence,
        "attempt": run.attempt, "worker": run.worker,
    }  # fmt: skip


@contextmanager
def working_on(run: Run) -> Iterator[None]:
    """Log lines inside belong to this run."""
    token = RUN.set(run)
    try:
        yield
    finally:
        RUN.reset(token)
