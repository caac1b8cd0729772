"""The context of a running call: what a handler may know and say. Injected as the keyword ``call``.

Decides nothing about the outcome; what it says goes through a `Line`, so that it works the same in a thread, on the
event loop, in a process of its own and in a test without a server.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..store.execution import Run
from .errors import CancelRequested, LeaseLost


class Line(Protocol):
    """The way from a running handler to its record."""

    def begin(self) -> str:
        """``begun``, ``cancel`` or ``lost``; durable when it returns ``begun``."""

    def progress(self, fraction: float | None, message: str) -> bool:
        """False where the lease is lost."""

    def standing(self) -> str:
        """``kept``, ``cancel`` or ``lost``, as far as the last renewal knows."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler is told about the call it runs.

    Attributes:
        key: the call key.
        idempotency_key: forward it downstream; it is the same in every attempt.
        attempt: 1 for the first.
        fence: grows with every claim of the namespace; forward it where downstream can refuse older ones.
        scope: whose call it is. turn_id, call_id: as the provider sent them.
        limit_at: end of the run limit on this process's monotonic clock, None for none.
        logger: writes this call's key and tool beside each line.
    """

    tool: str
    key: str
    idempotency_key: str
    attempt: int
    fence: int
    scope: str
    tenant: str
    turn_id: str
    call_id: str | None
    trace: str
    limit_at: float | None
    line: Line = field(repr=False, compare=False)

    @property
    def remaining(self) -> float | None:
        """Seconds until the run limit, at least 0; None for no limit."""
        return None if self.limit_at is None else max(0.0, self.limit_at - time.monotonic())

    @property
    def deadline(self) -> float | None:
        """The run limit as a Unix time of this machine, for libraries that take one; None for no limit."""
        remaining = self.remaining
        return None if remaining is None else time.time() + remaining

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        return _CallLogger(logging.getLogger(f"toolonce.tool.{self.tool}"), {"call": self.key, "attempt": self.attempt})

    def begin(self) -> None:
        """Say that from here on the effect may have started; durable before it returns (one round trip).

        Raises:
            CancelRequested: someone asked for a stop before the effect; nothing was written.
            LeaseLost: this attempt has no right to start an effect any more.
        """
        _heed(self.line.begin())

    def progress(self, fraction: float | None = None, message: str = "") -> None:
        """Tell those who wait how far it is; `fraction` is 0 to 1.

        Raises:
            LeaseLost: nobody listens any more.
        """
        if fraction is not None and not 0 <= fraction <= 1:
            raise ValueError(f"progress is a fraction from 0 to 1, not {fraction}")
        if not self.line.progress(fraction, message):
            _heed("lost")

    def still_mine(self) -> None:
        """Stop here if there is no reason to go on; costs no round trip.

        Raises:
            CancelRequested: someone asked for a stop.
            LeaseLost: the lease is gone.
        """
        _heed(self.line.standing())

    async def begin_async(self) -> None:
        """`begin` without stopping the event loop."""
        await asyncio.to_thread(self.begin)

    async def progress_async(self, fraction: float | None = None, message: str = "") -> None:
        """`progress` without stopping the event loop."""
        await asyncio.to_thread(self.progress, fraction, message)


def context_of(run: Run, limit_at: float | None, line: Line) -> Call:
    """The context of a claimed run."""
    return Call(
        tool=run.tool,
        key=run.call,
        idempotency_key=run.idempotency_key,
        attempt=run.attempt,
        fence=run.fence,
        scope=run.scope,
        tenant=run.tenant,
        turn_id=run.turn_id,
        call_id=run.call_id,
        trace=run.trace,
        limit_at=limit_at,
        line=line,
    )


def _heed(standing: str) -> None:
    if standing == "lost":
        raise LeaseLost("the right to run this call is gone")
    if standing == "cancel":
        raise CancelRequested("a stop was asked for")


class _CallLogger(logging.LoggerAdapter[logging.Logger]):
    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        extra = dict(self.extra or {})
        return f"[call {str(extra.get('call'))[:8]}] {msg}", {**kwargs, "extra": {**extra, **kwargs.get("extra", {})}}
