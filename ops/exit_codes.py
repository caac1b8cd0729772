"""The exit codes of commands, and which error gives which code.

Scripts and probes rely on these numbers. Must not know any command.
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
    """How a command ended."""

    DONE = 0
    ENDED_BADLY = 1
    """A call failed, was refused, is unknown or still open; or something was not found."""
    USAGE = 2
    UNREACHABLE = 3
    """Redis, or the embedded server, does not answer, or refuses a command."""
    REFUSED = 4
    """Refused for safety: nothing was changed."""
    INTERRUPTED = 130
    """Ctrl-C; the number that shells use."""


def code_of(error: Exception) -> ExitCode | None:
    """The code of an expected error; None for a defect of toolonce."""
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
    """The line for an expected error: its cause, and its source where it is not toolonce."""
    match error:
        case UnicodeEncodeError():
            return f"{error.object[error.start : error.end]!r} is not valid UTF-8 and cannot be stored"
        case OSError(strerror=str(cause)):
            return f"{error.filename}: {cause}" if error.filename else f"the output cannot be written: {cause}"
        case RedisError():
            return refused(error)
        case _:
            return str(error)
