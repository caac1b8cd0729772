"""Named points where a process can be made to die or to stop, so that tests can look at what is left.

Armed by one environment variable, read once at import: ``TOOLONCE_CRASH_POINT=<name>[:kill|:stop][@N]`` kills
(SIGKILL, the default) or stops (SIGSTOP) the process itself when the point is reached for the Nth time. Not armed, a
point costs one comparison. The names are listed here and nowhere else.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable
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


def _point(armed: Armed) -> Callable[[str], None]:
    hits = itertools.count(1)

    def reach(name: str) -> None:
        if name == armed.name and next(hits) == armed.hit:
            os.kill(os.getpid(), armed.signal)

    return reach


def _nothing(name: str) -> None:
    pass


reach: Callable[[str], None] = _point(parse(os.environ[VARIABLE])) if os.environ.get(VARIABLE) else _nothing
"""Say that the point of this name is reached."""
