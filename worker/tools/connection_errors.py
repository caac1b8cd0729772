"""Which errors of the usual clients mean that nothing was sent, so that the call may run again whatever its effect.

Only what happens before the first byte of a request counts: no route, no name, a refused connection, no free
connection in time. A broken or timed-out read does not: the other side may have done it. The libraries are looked at
only where the tool's own code has loaded them.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator

from .errors import NotStarted

_BEFORE_SENDING = {
    "httpx": ("ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol"),
    "requests.exceptions": ("ConnectTimeout", "InvalidURL", "MissingSchema", "InvalidSchema"),
    "urllib3.exceptions": ("NewConnectionError", "ConnectTimeoutError", "NameResolutionError"),
    "redis.exceptions": ("BusyLoadingError", "MaxConnectionsError", "AuthenticationError"),
}
_NO_CONNECTION = {errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN}


def nothing_was_sent(error: BaseException) -> bool:
    """Whether this error, or what caused it, can only come before anything was sent. False where that is not certain.

    redis-py reports a refused connection and a broken one by the same type; its message tells them apart.
    """
    return any(_before_sending(cause) for cause in _causes(error))


def not_started(error: BaseException, *, retry_after: float | None = None) -> BaseException:
    """`NotStarted` where nothing was sent, else the error itself: ``raise not_started(error) from error``."""
    return NotStarted(str(error), retry_after=retry_after) if nothing_was_sent(error) else error


def _before_sending(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno in _NO_CONNECTION:
        return True
    if type(error).__name__ == "gaierror":
        return True
    for module, names in _BEFORE_SENDING.items():
        loaded = sys.modules.get(module)
        kinds = tuple(kind for name in names if isinstance(kind := getattr(loaded, name, None), type))
        if kinds and isinstance(error, kinds):
            return True
    return (
        type(error).__module__.startswith("redis.") and str(error).startswith("Error") and "connecting to" in str(error)
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what it wraps, and what it was raised from."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        inner = (one.__cause__, getattr(one, "reason", None), *one.args)
        waiting += [cause for cause in inner if isinstance(cause, BaseException)]
