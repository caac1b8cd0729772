"""The exceptions that handlers raise to say how they ended, and those of the worker.

ToolonceError
  ToolError             a handler: it failed, finally; the outcome is stored and replayed
  NotStarted            a handler: nothing happened yet; it may run again, whatever its effect
  DidNotHappen          a reconcile: the effect is not there
  WorkerError           the worker or its configuration
    BadTool             a tool's definition is wrong
    ToolsNotLoaded      the tools' module or registry cannot be loaded
    NotThroughRQ        RQ tried to execute a pointer itself
BaseException
  StopAttempt           raised into a handler by its context; passes `except Exception`
    LeaseLost           this attempt has no right to run any more
    CancelRequested     someone asked for a stop
"""

from __future__ import annotations

from typing import Any, Literal

from ...store.model.errors import ToolonceError


class ToolError(ToolonceError):
    """The tool failed, and its failure is the answer: stored, replayed, never run again on our own.

    Args:
        message: one line fit for the model.
        code: a stable word of the tool's own.
        details: JSON-like facts that help to correct the call.
        effect: ``none`` where this attempt has changed nothing, for certain, and nothing of it will come: the model is
            told so, and a key of ``unique_by`` is free again. Left out, it may have had a part of its effect.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "tool_error",
        details: dict[str, Any] | None = None,
        effect: Literal["none"] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.details = details or {}
        self.effect = effect

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


class NotStarted(ToolonceError):
    """Nothing has happened yet, for certain: a refused connection, a rate limit answered before any work.

    Such an attempt does not count; the tool's ``deadline`` is the bound (600 s where it names none).

    Args:
        retry_after: seconds to wait before the next attempt, at least 0.1; where it is not a number, from 1 s on and
            twice as long each time, up to 60 s.
    """

    def __init__(self, message: str = "not started", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


class DidNotHappen(ToolonceError):
    """A reconcile has looked and is certain: the effect is not there, and will not come.

    The attempt that left the call unknown may still be at work in a process that cannot be asked: paused, cut off, or
    with its request on the way. Say this only where what was looked at is final, for example after the key was voided
    downstream; else raise anything else, and be asked again. With ``rerun_absent=True`` it lets the handler run again:
    an attempt that comes back to life after that has its effect beside the new one's.
    """


class WorkerError(ToolonceError):
    """Base of the worker's own errors; the message is one line with the cause and what to do."""


class BadTool(WorkerError):
    """A tool's definition cannot work: its signature, schema, or options."""


class ToolsNotLoaded(WorkerError):
    """The place named by ``--tools`` holds no registry that can be loaded."""


class NotThroughRQ(WorkerError):
    """RQ's own worker, or one of its tools, tried to execute a pointer. Nothing ran."""


class StopAttempt(BaseException):
    """Raised by the context into a handler that should stop now. Let it pass."""


class LeaseLost(StopAttempt):
    """The right to run is gone: another attempt, or an operator, has the call."""


class CancelRequested(StopAttempt):
    """Someone asked for a stop of this call."""


def _rebuild(kind: type[Exception], args: tuple[Any, ...], state: dict[str, Any]) -> Exception:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error
