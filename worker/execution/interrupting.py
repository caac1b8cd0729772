"""Giving up what still runs when a process has to go: the store hears it at once, instead of after a lease.

Mutating calls that were entered become unknown, others are queued again; the store decides, by the same rule as for
a lease that ran out. A handler that still ends before the process does may add its late word.
"""

from __future__ import annotations

import logging

from redis.exceptions import RedisError

from ...store.connections.connection import Connection
from ...store.model.errors import StoreError
from ...store.operations.runs import interrupt
from .lease import Leases

_ENDS_WITHIN_MS = 1_000
"""The process ends once this is told; until then its handlers are at work."""
_LOG = logging.getLogger("toolonce.worker")


def interrupt_all(connection: Connection, leases: Leases, reason: str) -> None:
    """Give up every run of this process. What the store does not hear, it finds out by the leases."""
    for hold in leases.held():
        try:
            became = connection.run(interrupt(connection.space, hold.run, reason=reason, inside_ms=_ENDS_WITHIN_MS))
        except (StoreError, RedisError) as error:
            _LOG.error("the store does not hear what is given up; its leases will tell: %s", error)
            return
        leases.drop(hold)
        _LOG.warning("call %s (%s) was %s: now %s", hold.run.call, hold.run.tool, reason, became)
