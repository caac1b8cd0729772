"""Signals of a worker process, counted. A signal handler only writes to a pipe: it takes no lock and raises nothing, so
it may interrupt any line.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from types import FrameType
from typing import Any

_ASKED = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """A service: SIGTERM and SIGINT from its start to its stop, and SIGHUP (the terminal is closed) unless it is
    ignored (``nohup``). Works as process 1 too, where nothing has a default action.

    Attributes:
        count: how many have come.
    """

    def __init__(self) -> None:
        self.count = 0
        self._read = self._write = -1
        self._before: dict[signal.Signals, Any] = {}

    def start(self) -> None:
        """Count what comes from now on."""
        if self._read >= 0:
            return
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        os.set_blocking(self._read, False)
        if self.count:  # it was asked before the start
            os.write(self._write, b".")
        if threading.current_thread() is threading.main_thread():
            hang_up = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
            self._before = {number: signal.signal(number, self._note) for number in (*_ASKED, *hang_up)}

    def stop(self, deadline: float) -> None:
        """Restore the previous signal handlers."""
        while self._before:
            signal.signal(*self._before.popitem())
        if self._read >= 0:
            ends, self._read, self._write = (self._read, self._write), -1, -1
            for end in ends:
                os.close(end)

    def wait(self, deadline: float) -> bool:
        """See `Service.wait`."""
        return self._read < 0

    def ask(self) -> None:
        """Count one, as if a signal had come."""
        self.count += 1
        if self._write >= 0:
            os.write(self._write, b".")

    def sleep(self, seconds: float) -> bool:
        """Sleep, or wake at a signal; True if one has come since the last time."""
        ready, _, _ = select.select([self._read], [], [], seconds)
        return bool(ready) and bool(os.read(self._read, 64))

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.ask()
