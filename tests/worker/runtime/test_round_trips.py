"""What a call costs on the way from the queue to its outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.processes.tools_under_test import thread_tools
from tests.support.processes.workers import Site
from toolonce.store.connections.connection import Connection, Link, Patience
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.states import State
from toolonce.worker.runtime.process import Options, Process
from toolonce.worker.runtime.signals import Signals

CALLS = 25


class CountingLink(Link):
    """Counts its round trips, without those in which a queue had nothing."""

    trips = 0

    def _exchange(self, commands: Any, timeout: float | None = None) -> Any:
        replies = super()._exchange(commands, timeout)
        CountingLink.trips += commands[0][0] != "LMOVE" or replies != [None]
        return replies


class CountingConnection(Connection):
    """Its slots' connections count."""

    def dedicated(self) -> Link:
        return CountingLink(self.pool.make_connection(), Patience())


@pytest.fixture
def trips_of(site: Site) -> Callable[[int], int]:
    """What so many calls cost a worker of one slot: round trips, without those that tell the server a script."""

    def work(calls: int) -> int:
        site.publish(thread_tools)
        keys = [site.submit("look", what=str(number)) for number in range(calls)]
        connection = CountingConnection(site.url, namespace=site.namespace)
        CountingLink.trips = 0
        worker = Process(connection, thread_tools, Options(concurrency=1, burst=True), keyring=Keyring())
        worker.live(Signals())
        connection.close()
        assert all(site.state(key) is State.SUCCEEDED for key in keys)
        return CountingLink.trips

    work(2)  # the server knows the scripts now
    return work


def test_a_lone_call_costs_three_round_trips(trips_of: Callable[[int], int]) -> None:
    assert trips_of(1) == 3


def test_under_load_a_call_costs_one_round_trip(trips_of: Callable[[int], int]) -> None:
    assert trips_of(CALLS) == CALLS + 2
