"""Writes what must not be lost: a result is kept and sent again until the store has acknowledged it, within a limit.

While the store is away there is nothing else for a slot to do, so keeping the result in the slot is the back pressure.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Protocol, TypeVar

from redis.exceptions import RedisError

from ...store.model.errors import StoreError, StoreUnavailable
from ...store.operations.operation import Operation

T = TypeVar("T")
_LOG = logging.getLogger("toolonce.worker")
_PAUSE_S = 0.5
KEEP_S = 900.0
"""How long a result is kept: longer than a failover, or than it takes to free a disk."""


class OperationRunner(Protocol):
    """A link or a connection."""

    def run(self, operation: Operation[T]) -> T: ...


class Persistence:
    """Sends writes again until they are acknowledged. `hurry` ends all waiting, since the process ends."""

    def __init__(self, keep_s: float = KEEP_S) -> None:
        self.keep_s = keep_s
        self.hurry = threading.Event()

    def write(self, sends: OperationRunner, operation: Operation[T], *, what: str) -> T:
        """Run one operation that may be repeated, until it is acknowledged.

        Raises:
            StoreUnavailable: not within the limit, or not before the process has to end.
        """
        until = time.monotonic() + self.keep_s
        told = False
        while True:
            try:
                return sends.run(operation)
            except (StoreError, RedisError) as error:  # RedisError: a full disk (MISCONF), a replica (READONLY), ...
                if self.hurry.wait(_PAUSE_S) or time.monotonic() > until:
                    raise StoreUnavailable(f"{what} could not be stored: {error}") from error
                if not told:
                    _LOG.warning("%s is kept until the store can be written: %s", what, error)
                told = True
