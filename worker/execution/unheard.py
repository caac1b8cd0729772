"""Logs exceptions in a handler's own threads, tasks and finalizers without their text, since nothing waits for these.

Python writes the text of such exceptions to stderr by itself, and it may hold a secret. Where a tool has secret fields,
the process logs their type and their frames in its place. The hooks are of the whole process, and so of its forks.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...store.model.secret_texts import Secrets
from ..tools.registry import Registry
from ..tools.tracebacks import traceback_of

_LOG = logging.getLogger("toolonce.worker")
_HIDDEN = Secrets(declared=True)


@contextmanager
def without_texts(registry: Registry) -> Iterator[None]:
    """Hold the hooks for as long as the worker lives; nothing is done where no tool has secret fields."""
    if not any(tool.has_secrets for tool in registry):
        yield
        return
    before, asyncio_log = (threading.excepthook, sys.unraisablehook), logging.getLogger("asyncio")
    threading.excepthook = sys.unraisablehook = _tell
    asyncio_log.addFilter(_tell_of_loop)
    try:
        yield
    finally:
        threading.excepthook, sys.unraisablehook = before
        asyncio_log.removeFilter(_tell_of_loop)


def _tell(failed: Any) -> None:
    _say(failed.exc_value)


def _tell_of_loop(record: logging.LogRecord) -> bool:
    """Lines of the event loop that come with an exception repeat its text, in the message as well."""
    if not record.exc_info:
        return True
    _say(record.exc_info[1])
    return False


def _say(error: BaseException | None) -> None:
    if error is not None and not isinstance(error, SystemExit):
        _LOG.error("something that a handler left behind failed\n%s", traceback_of(error, _HIDDEN))
