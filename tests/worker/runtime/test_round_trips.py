"""What a call costs on the way from the queue to its outcome."""

from __future__ import annotations

from typing import Any

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

    def _exchange(self, args: Any, timeout: float | None = None) -> Any:
        CountingLink.trips += 1
        reply = super()._exchange(args, timeout)
        if args[0] == "LMOVE" and reply is None:
            CountingLink.trips -= 1
        return reply


class CountingConnection(Connection):
    """Its slots' connections count."""

    def dedicated(self) -> Link:
        return CountingLink(self.pool.make_connection(), Patience())


def test_a_call_costs_three_round_trips(site: Site) -> None:
    site.publish(thread_tools)
    keys = [site.submit("look", what=str(number)) for number in range(CALLS)]
    connection = CountingConnection(site.url, namespace=site.namespace)
    CountingLink.trips = 0
    worker = Process(connection, thread_tools, Options(concurrency=1, burst=True), keyring=Keyring())
    worker.live(Signals())
    connection.close()

    assert all(site.state(key) is State.SUCCEEDED for key in keys)
    assert CountingLink.trips <= 3 * CALLS + 2, "two scripts may have been unknown to the server"
    assert CountingLink.trips >= 3 * CALLS
