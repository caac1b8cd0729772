"""Named points where a process can be made to die or to stop, so that tests can look at what is left.

Armed by one environment variable, read once at import: ``TOOLONCE_CRASH_POINT=<name>[:kill|:stop][@N]`` kills
(SIGKILL, the default) or stops (SIGSTOP) the process itself when the point is reached for the Nth time; or by `arm`,
in a process forked later. Not armed, a point costs one comparison. The names are listed here and nowhere else.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
from typing import NamedTuple

VARIABLE = "TOOLONCE_CRASH_POINT"
NAMES = (
    "before_admit", "after_admit_reply_lost", "after_blmove", "after_claim", "before_begin", "after_effect",
    "before_settle", "after_settle", "in_renew", "in_recovery",
)  # fmt: skip
_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


class Armed(NamedTuple):
    """What the variable asks for."""

    name: str
    signal: signal.Signals
    hit: int


def parse(text: str) -> Armed:
    """Read the variable's value.

    Raises:
        ValueError: no such point or action.
    """
    where, _, hit = text.partition("@")
    name, _, action = where.partition(":")
    if name not in NAMES or (action or "kill") not in _SIGNALS:
        raise ValueError(f"{VARIABLE}={text!r}: use one of {', '.join(NAMES)}, then ':kill' or ':stop', then '@N'")
    return Armed(name, _SIGNALS[action or "kill"], int(hit or 1))


def arm(text: str) -> None:
    """Arm this process, or disarm it with "".

    Raises:
        ValueError: no such point or action.
    """
    global _armed, _hits
    _armed, _hits = parse(text) if text else None, itertools.count(1)


def reach(name: str) -> None:
    """Say that the point of this name is reached."""
    if _armed is not None and name == _armed.name and next(_hits) == _armed.hit:
        # To this very thread: a stop of the process alone would let it run on for a moment.
        signal.pthread_kill(threading.get_ident(), _armed.signal)


_armed: Armed | None = None
_hits = itertools.count(1)
arm(os.environ.get(VARIABLE, ""))
