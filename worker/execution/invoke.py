"""Entering a handler: call it, and turn whatever comes out into an `End`. The one place where user code is run.

`BaseException` is caught here on purpose: a handler that raises SystemExit ends its call, not the worker.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ..tools.call import Call
from ..tools.errors import CancelRequested, DidNotHappen
from ..tools.handler_result import End, Kind, classify, described, named
from ..tools.results import encode
from ..tools.tool import Tool


@dataclass(frozen=True, slots=True)
class HandlerEntry:
    """What is to be entered: the tool, the keyword arguments as the handler takes them, and the context."""

    tool: Tool
    values: dict[str, Any]
    call: Call


def enter(entry: HandlerEntry) -> End:
    """Run a plain handler in this thread."""
    tool = entry.tool
    try:
        if tool.signature.takes_call:
            return returned(tool, tool.handler(**entry.values, call=entry.call))
        return returned(tool, tool.handler(**entry.values))
    except BaseException as error:
        return classify(error, tool.not_started, entry.call.secrets)


async def enter_async(entry: HandlerEntry, is_stopped: Callable[[], bool] = lambda: False) -> End:
    """Run an async handler in this task; `is_stopped` tells whether its task was cancelled on request."""
    tool = entry.tool
    context = {"call": entry.call} if tool.signature.takes_call else {}
    try:
        return returned(tool, await tool.handler(**entry.values, **context))
    except asyncio.CancelledError as error:
        return classify(CancelRequested() if is_stopped() else error, tool.not_started, entry.call.secrets)
    except BaseException as error:
        return classify(error, tool.not_started, entry.call.secrets)


def enter_reconcile(entry: HandlerEntry, wait: Callable[[Awaitable[Any]], Any]) -> End:
    """Run a tool's reconcile in this thread; `wait` runs what an async one returns to its end."""
    tool = entry.tool
    context = {"call": entry.call} if tool.reconciler_takes_call else {}
    secrets = entry.call.secrets
    assert tool.reconciler
    try:
        said = tool.reconciler(**entry.values, **context)
        return returned(tool, wait(said) if inspect.isawaitable(said) else said)
    except DidNotHappen as error:
        return End(Kind.ABSENT, code="did_not_happen", message=described(error, secrets))
    except BaseException as error:
        return End(Kind.RAISED, code=type(error).__name__, message=named(error, secrets))


def returned(tool: Tool, value: Any) -> End:
    """A value came back: a success, whatever it is."""
    return End(Kind.RETURNED, *encoded(tool, value))


def encoded(tool: Tool, value: Any) -> tuple[str, str]:
    """A value of the tool's and its marks. One that may hold secrets is not cut yet; see `prepare.Ready.protect`."""
    limit = None if tool.has_secrets else tool.result_limit
    return encode(value, limit, hides=bool(tool.spec.secret_result))


def overrun(entry: HandlerEntry) -> End:
    """The end of an entry whose run limit passed."""
    return End(Kind.TIMED_OUT, code="timed_out", message=f"its run limit of {entry.tool.spec.timeout_ms} ms passed")
