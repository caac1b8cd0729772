"""What the exit code of a command says, and which error gives which code.

Scripts and probes rely on these numbers. Knows all error trees, and no command.
"""

from __future__ import annotations

from enum import IntEnum

from redis.exceptions import RedisError

from ..store.connections.connection import refused
from ..store.model.errors import StoreError, StoreMisuse, StoreUnavailable, StoreUnsafe
from ..stream.turns.errors import StreamError, StreamMisuse
from ..worker.tools.errors import WorkerError
from .errors import OpsError


class ExitCode(IntEnum):
    """DONE, or why not."""

    DONE = 0
    ENDED_BADLY = 1
    """A call failed, was refused, is in doubt or still open; or what was asked for is not there."""
    USAGE = 2
    UNREACHABLE = 3
    """Redis, or the server of our own, does not answer, or refuses what we ask."""
    REFUSED = 4
    """Refused for safety: nothing was changed."""
    INTERRUPTED = 130
    """Ctrl-C, as shells count it."""


def code_of(error: Exception) -> ExitCode | None:
    """The code for an error that one line explains; None for one that is a defect of ours."""
    match error:
        case OpsError():
            return ExitCode(error.exit_code)
        case StoreUnavailable():
            return ExitCode.UNREACHABLE
        case StoreUnsafe():
            return ExitCode.REFUSED
        case StoreMisuse() | StreamMisuse() | WorkerError():
            return ExitCode.USAGE
        case StoreError() | StreamError() | OSError():
            return ExitCode.ENDED_BADLY
        case UnicodeEncodeError():
            return ExitCode.USAGE
        case RedisError():
            return ExitCode.UNREACHABLE
        case _:
            return None


def explain(error: Exception) -> str:
    """The line for an error that has a code: the cause, and who says so where it is not one of ours."""
    match error:
        case UnicodeEncodeError():
            return f"{error.object[error.start : error.end]!r} is no UTF-8 text and cannot be stored"
        case OSError(strerror=str(cause)):
            return f"{error.filename}: {cause}" if error.filename else f"the output cannot be written: {cause}"
        case RedisError():
            return refused(error)
        case _:
            return str(error)
