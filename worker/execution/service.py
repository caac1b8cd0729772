"""Long-lived parts of a worker process: the one contract by which they start and stop.

Decides the order in which a failed start and an end undo what was started. Knows no part by name.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol


class Service(Protocol):
    """A part that lives as long as the process works. It starts once; a second start does nothing."""

    def start(self) -> None:
        """Begin. Where it raises, `stop` undoes what was begun."""

    def stop(self, deadline: float) -> None:
        """End, and wait for that until `deadline` at most (monotonic seconds). It does nothing before the start, and
        nothing the second time."""

    def wait(self, deadline: float) -> bool:
        """Wait until it has ended, until `deadline` at most (monotonic seconds); whether it has. True before the
        start."""


class ThreadService(ABC):
    """A service that is one thread. `_work` returns soon after `_ended` is set and the thread was woken."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._ended = False
        self._bell = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """See `Service.start`."""
        if self._thread is None:
            thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            thread.start()
            self._thread = thread

    def stop(self, deadline: float) -> None:
        """See `Service.stop`."""
        if self._thread and self._thread.is_alive():
            self._ended = True
            self._ring()
            self.wait(deadline)

    def wait(self, deadline: float) -> bool:
        """See `Service.wait`."""
        if self._thread:
            self._thread.join(max(0.0, deadline - time.monotonic()))
        return self._thread is None or not self._thread.is_alive()

    def _ring(self) -> None:
        """Wake the thread."""
        self._bell.set()

    @abstractmethod
    def _work(self) -> None:
        """What the thread does."""


@contextmanager
def running(services: Iterable[Service], *, within_s: float) -> Iterator[None]:
    """Start them in this order, and stop them in the reverse order at the end; each gets `within_s` for that. Where a
    start fails, it and those before it are stopped; a stop that fails keeps no other one from being stopped."""

    def stop(service: Service) -> None:
        service.stop(time.monotonic() + within_s)

    with ExitStack() as stack:
        for service in services:
            stack.callback(stop, service)
            service.start()
        yield
