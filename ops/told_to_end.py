"""What SIGTERM and a closed terminal mean for a command: it ends in order, so that no server of ours stays behind.

Commands that have something better to do with a signal (a drain) set their own handlers inside.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_ENDS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def told_to_end() -> Iterator[None]:
    """While it is entered, these signals raise SystemExit with the exit code that shells expect.

    One that is ignored (``nohup``) stays ignored. Threads other than the main one cannot set handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _ENDS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
