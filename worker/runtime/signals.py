"""Signals of a worker process, counted. A handler only writes to a pipe: it takes no lock and raises nothing, so it may
come at any line of ours.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from types import FrameType
from typing import Any, Self

_ASKED = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """SIGTERM and SIGINT while it is entered, and SIGHUP (the terminal is closed) unless it is ignored (``nohup``).
    Works as process 1 too, where nothing has a default action.

    Attributes:
        count: how many have come.
    """

    def __init__(self) -> None:
        self.count = 0
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        os.set_blocking(self._read, False)
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            hang_up = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
            self._before = {number: signal.signal(number, self._note) for number in (*_ASKED, *hang_up)}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        os.close(self._read)
        os.close(self._write)

    def ask(self) -> None:
        """Count one, as if a signal had come."""
        self.count += 1
        os.write(self._write, b".")

    def wait(self, seconds: float) -> bool:
        """Sleep, or wake at a signal; True if one has come since the last time."""
        ready, _, _ = select.select([self._read], [], [], seconds)
        return bool(ready) and bool(os.read(self._read, 64))

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.ask()
