"""The context of a running call: what a handler can read and report. Injected as the keyword ``call``.

Decides nothing about the outcome; reports go through a `CallChannel`, so that it works the same in a thread, on
the event loop, in a process of its own and in a test without a server.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import time
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...store.model.plain import plain_value, whole_text
from ...store.model.secret_texts import NO_SECRETS, Secrets
from ...store.operations.runs import Run
from .errors import CancelRequested, LeaseLost
from .tracebacks import traceback_of


class CallChannel(Protocol):
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
    channel: CallChannel = field(repr=False, compare=False)
    secrets: Secrets = field(default=NO_SECRETS, repr=False, compare=False)

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
        """A logger whose lines name the call and the attempt, and never hold its secrets."""
        extra = {"call": self.key, "attempt": self.attempt}
        return _CallLogger(logging.getLogger(f"toolonce.tool.{self.tool}"), extra, self.secrets)

    def begin(self) -> None:
        """Say that from here on the effect may have started; durable before it returns (one round trip).

        Raises:
            CancelRequested: someone asked for a stop before the effect; nothing was written.
            LeaseLost: this attempt has no right to start an effect any more.
        """
        _heed(self.channel.begin())

    def progress(self, fraction: float | None = None, message: str = "") -> None:
        """Tell those who wait how far it is; `fraction` is 0 to 1, and what lies beyond counts as the nearer of both.

        A fraction that is not a number is reported as text, since a progress report must not end a handler in the
        middle of its effect.

        Raises:
            LeaseLost: nobody listens any more.
        """
        if fraction is not None and not _is_number(fraction):
            fraction, message = None, f"{whole_text(fraction)} {whole_text(message)}".rstrip()
        share = None if fraction is None else min(1.0, max(0.0, float(fraction)))
        if not self.channel.progress(share, whole_text(message)):
            _heed("lost")

    def check_lease(self) -> None:
        """Stop here if there is no reason to go on. A stop that someone asked for is heard within two seconds.

        Costs no round trip while the lease was confirmed less than a lease ago; else the store is asked, and a store
        that does not answer within a second means that the lease is lost.

        Raises:
            CancelRequested: someone asked for a stop.
            LeaseLost: the lease is gone, or nobody confirms it.
        """
        _heed(self.channel.standing())

    async def begin_async(self) -> None:
        """`begin` without stopping the event loop."""
        await asyncio.to_thread(self.begin)

    async def check_lease_async(self) -> None:
        """`check_lease` without stopping the event loop."""
        await asyncio.to_thread(self.check_lease)

    async def progress_async(self, fraction: float | None = None, message: str = "") -> None:
        """`progress` without stopping the event loop."""
        await asyncio.to_thread(self.progress, fraction, message)


def context_of(run: Run, limit_at: float | None, channel: CallChannel, secrets: Secrets = NO_SECRETS) -> Call:
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
        channel=channel,
        secrets=secrets,
    )


def _heed(standing: str) -> None:
    if standing == "lost":
        raise LeaseLost("the right to run this call is gone")
    if standing == "cancel":
        raise CancelRequested("a stop was asked for")


class _CallLogger(logging.LoggerAdapter[logging.Logger]):
    def __init__(self, logger: logging.Logger, extra: Mapping[str, object], secrets: Secrets) -> None:
        super().__init__(logger, extra)
        self._secrets = secrets

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Without secrets; of an exception, which may hold them in any spelling, its type and its frames."""
        if not self.isEnabledFor(level):
            return
        words = _formatted(msg, args)
        if words is None:  # a line that cannot be written is not an error of the handler's
            msg, args = f"{whole_text(msg)} (its arguments do not fit)", ()
        if self._secrets:
            words = self._secrets.scrub(words or str(msg))
            if error := _exception(kwargs.pop("exc_info", None)):
                words = f"{words}\n{traceback_of(error, self._secrets)}"
            msg, args = words, ()
            kwargs["extra"] = self._secrets.scrub_value(plain_value(kwargs.get("extra") or {}))
        super().log(level, msg, *args, **kwargs)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        extra = dict(self.extra or {})
        return f"[call {str(extra.get('call'))[:8]}] {msg}", {**kwargs, "extra": {**extra, **kwargs.get("extra", {})}}


def _is_number(fraction: object) -> bool:
    try:
        return math.isfinite(fraction)  # type: ignore[arg-type]  # whatever a handler gives
    except (TypeError, ValueError, OverflowError):
        return False


def _formatted(msg: object, args: tuple[object, ...]) -> str | None:
    """The text of a log line; None where its arguments do not fit, or fail."""
    try:
        return logging.LogRecord("", 0, "", 0, msg, args, None).getMessage()
    except Exception:
        return None


def _exception(given: object) -> BaseException | None:
    """What ``exc_info=`` names, in the forms that logging takes."""
    match given:
        case BaseException():
            return given
        case (_, BaseException() as error, _):
            return error
        case None | False:
            return None
        case _:
            return sys.exc_info()[1]
