"""The way from a handler in this process to its record: what `Call` says goes through here to the store.

Decides nothing; remembers whether the handler has begun, which the policy asks afterwards.
"""

from __future__ import annotations

import logging

from redis.exceptions import RedisError

from ..store.crashpoints import reach
from ..store.errors import StoreError, StoreFull
from ..store.execution import begin, progress
from ..store.secret_texts import NO_SECRETS, Secrets
from .ends import told
from .errors import NotStarted
from .lease import Hold, Leases

_LOG = logging.getLogger("toolonce.worker")


class StoreLine:
    """The line of one attempt; see `call.Line`. Any thread of the handler may use it.

    Attributes:
        begun: the effect may have started. True also where the word was sent and its answer never came.
    """

    __slots__ = ("_closed", "_connection", "_hold", "_leases", "_secrets", "begun")

    def __init__(self, leases: Leases, hold: Hold, secrets: Secrets = NO_SECRETS) -> None:
        self._connection = leases.connection
        self._leases = leases
        self._hold = hold
        self._secrets = secrets
        self._closed = False
        self.begun = False

    def begin(self) -> str:
        if self._closed:
            return "lost"
        reach("before_begin")
        before, self.begun = self.begun, True
        try:
            word = self._connection.run(begin(self._connection.space, self._hold.run))
        except StoreFull as error:
            self.begun = before
            if not self._hold.run.begins:  # its effect counts from the entry on: it cannot say "nothing happened"
                raise
            raise NotStarted("the store has no memory left for begin()", retry_after=1) from error
        self.begun = before or word == "begun"
        return word

    def progress(self, fraction: float | None, message: str) -> bool:
        if self._closed:
            return False
        words = told(message, self._secrets)
        try:
            return self._leases.at_once.run(progress(self._connection.space, self._hold.run, fraction, words))
        except (StoreError, RedisError) as error:  # a report that is lost is no reason to end a handler in mid-effect
            _LOG.warning("call %s: its progress is not stored: %s", self._hold.run.call, error)
            return self.standing() != "lost"

    def standing(self) -> str:
        return "lost" if self._closed else self._leases.check(self._hold)

    def close(self) -> None:
        """The attempt is over: a thread that the handler left behind has nothing to say any more."""
        self._closed = True
