"""The way from a handler in this process to its record: what `Call` says goes through here to the store.

Decides nothing; remembers whether the handler has begun, which the policy asks afterwards.
"""

from __future__ import annotations

import logging
from typing import NoReturn

from redis.exceptions import RedisError

from ...store.crashpoints import reach
from ...store.model.errors import StoreError, StoreFull, StoreUnavailable
from ...store.model.secret_texts import NO_SECRETS, Secrets
from ...store.model.specs import Effect
from ...store.operations.runs import begin, progress
from ..tools.errors import NotStarted
from ..tools.handler_result import told
from .lease import Hold, Leases
from .replicas import Replicas

_LOG = logging.getLogger("toolonce.worker")


class StoreLine:
    """The line of one attempt; see `call.Line`. Any thread of the handler may use it.

    Attributes:
        begun: the effect may have started. True also where the word was sent and its answer never came.
    """

    __slots__ = ("_closed", "_confirmed", "_connection", "_hold", "_leases", "_replicas", "_secrets", "begun")

    def __init__(self, leases: Leases, replicas: Replicas, hold: Hold, secrets: Secrets = NO_SECRETS) -> None:
        self._connection = leases.connection
        self._leases = leases
        self._replicas = replicas
        self._hold = hold
        self._secrets = secrets
        self._closed = False
        self._confirmed = False
        self.begun = False

    def begin(self) -> str:
        if self._closed:
            return "lost"
        reach("before_begin")
        before, self.begun = self.begun, True
        try:
            word, enough = self._run_begin()
        except StoreFull as error:
            self.begun = before
            if not self._hold.run.begins:  # its effect counts from the entry on: it cannot say "nothing happened"
                raise
            raise NotStarted("the store has no memory left for begin()", retry_after=1) from error
        if word == "begun" and not enough:
            self._fall_short(before)
        self._confirmed = self._confirmed or word == "begun"
        self.begun = before or word == "begun"
        return word

    def _fall_short(self, before: bool) -> NoReturn:
        """Nothing may start. Where an earlier word of this attempt was sent, nobody is told that nothing has."""
        why = "too few replicas have the word that the effect begins"
        if before:
            raise StoreUnavailable(why)
        self.begun = False
        raise NotStarted(why, retry_after=1)

    def _run_begin(self) -> tuple[str, bool]:
        """The answer; and whether enough replicas have it. Where the effect counts from the entry on, that was asked
        for at the claim."""
        run = self._hold.run
        request = begin(self._connection.space, run)
        if run.begins and run.effect is Effect.MUTATING and not self._confirmed:
            return self._connection.run(self._replicas.acknowledging(request))
        return self._connection.run(request), True

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
