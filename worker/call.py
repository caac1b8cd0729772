"""The context of a running call: what a handler may know and say. Injected as the keyword ``call``.

Decides nothing about the outcome; what it says goes through a `Line`, so that it works the same in a thread, on the
event loop, in a process of its own and in a test without a server.
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..store.execution import Run
from ..store.sealing import scrub
from .errors import CancelRequested, LeaseLost


class Line(Protocol):
    """The way from a running handler to its record."""

    def begin(self) -> str:
        """``begun``, ``cancel`` or ``lost``; durable when it returns ``begun``."""

    def progress(self, fraction: float | None, message: str) -> bool:
        """False where the lease is lost."""

    def standing(self) -> str:
        """``kept``, ``cancel`` or ``lost``; the store is asked where a lease has passed since it was last granted."""


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
        logger: writes this call's key and tool beside each line, and no secret argument in any.
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
    secrets: Sequence[str] = field(default=(), repr=False, compare=False)

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
        extra = {"call": self.key, "attempt": self.attempt}
        return _CallLogger(logging.getLogger(f"toolonce.tool.{self.tool}"), extra, self.secrets)

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

    def check_lease(self) -> None:
        """Stop here if there is no reason to go on. A stop that someone asked for is heard within two seconds.

        Costs no round trip while the lease was confirmed less than a lease ago; else the store is asked, and a store
        that does not answer within a second means that the lease is lost.

        Raises:
            CancelRequested: someone asked for a stop.
            LeaseLost: the lease is gone, or nobody confirms it.
        """
        _heed(self.line.standing())

    async def begin_async(self) -> None:
        """`begin` without stopping the event loop."""
        await asyncio.to_thread(self.begin)

    async def check_lease_async(self) -> None:
        """`check_lease` without stopping the event loop."""
        await asyncio.to_thread(self.check_lease)

    async def progress_async(self, fraction: float | None = None, message: str = "") -> None:
        """`progress` without stopping the event loop."""
        await asyncio.to_thread(self.progress, fraction, message)


def context_of(run: Run, limit_at: float | None, line: Line, secrets: Sequence[str] = ()) -> Call:
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
        secrets=secrets,
    )


def _heed(standing: str) -> None:
    if standing == "lost":
        raise LeaseLost("the right to run this call is gone")
    if standing == "cancel":
        raise CancelRequested("a stop was asked for")


class _CallLogger(logging.LoggerAdapter[logging.Logger]):
    def __init__(self, logger: logging.Logger, extra: Mapping[str, object], secrets: Sequence[str]) -> None:
        super().__init__(logger, extra)
        self._secrets = secrets

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Without secrets; a traceback, which may hold them in any line, is made a text first."""
        if self._secrets and self.isEnabledFor(level):
            words = str(msg) % args if args else str(msg)
            if kwargs.pop("exc_info", None):
                words = f"{words}\n{traceback.format_exc()}"
            msg, args = scrub(words, self._secrets), ()
        super().log(level, msg, *args, **kwargs)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        extra = dict(self.extra or {})
        return f"[call {str(extra.get('call'))[:8]}] {msg}", {**kwargs, "extra": {**extra, **kwargs.get("extra", {})}}
