"""Where an exception came from, and its traceback as a text for the worker's log.

Decides what may be told of an exception: where the tool has secret fields, its type and its places only, since its text
may hold a secret in a spelling that nobody knows. Knows no store and no log.
"""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from types import TracebackType

from ...store.model.plain import whole_text
from ...store.model.secret_texts import Secrets

MOST = 8_000
"""Characters of a traceback that are kept: its end, which names the cause."""
_OURS = str(Path(__file__).resolve().parent)
_STANDARD = sysconfig.get_path("stdlib")
_INSTALLED = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))


def place_of(error: BaseException) -> tuple[str, int]:
    """File and line of the innermost frame of the user's own code; else of an installed package, else of any."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    return min(reversed(frames), key=lambda frame: _strangeness(frame[0]), default=("", 0))


def _strangeness(file: str) -> int:
    if file.startswith(_OURS):
        return 3
    if file.startswith(_INSTALLED):  # looked at first: where there is no venv, it lies inside of the standard library
        return 1
    return 2 if file.startswith((_STANDARD, "<frozen")) else 0


def traceback_of(error: BaseException, secrets: Secrets) -> str:
    """The traceback with its causes, at most `MOST` characters."""
    if secrets:
        text = f"{_frames(error.__traceback__)}{type(error).__name__} (its tool has secret fields: no text, no values)"
        return secrets.scrub(text)[-MOST:]
    try:
        text = "".join(traceback.format_exception(error))
    except Exception:  # an exception's own methods may fail
        text = f"{_frames(error.__traceback__)}{type(error).__name__}"
    return whole_text(text.rstrip())[-MOST:]


def _frames(trace: TracebackType | None) -> str:
    """Files, lines and functions, without the source: a line of it may hold a secret."""
    lines = [
        f'  File "{frame.f_code.co_filename}", line {line}, in {frame.f_code.co_name}\n'
        for frame, line in traceback.walk_tb(trace)
    ]
    return "".join(("Traceback (most recent call last):\n", *lines))
