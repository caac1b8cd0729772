"""A worker that is cut off from its store while a handler works: it must not work on beside its successor."""

from __future__ import annotations

import pytest

from tests.support.processes.tools_under_test import thread_tools
from tests.support.processes.workers import Site
from tests.support.servers.proxy import FaultProxy
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.worker import Call, Registry


@pytest.mark.parametrize("tool", ["until_stopped", "process_until_stopped"])
def test_a_handler_whose_worker_is_cut_off_stops_before_another_works_for_long(
    site: Site, redis_server: RealServer, tool: str
) -> None:
    """faults 8: `check_lease` said yes while the store was away, and an operator's retry made two work at once."""
    with FaultProxy(redis_server.socket) as proxy, site.worker(url=proxy.url):
        key = site.submit(tool, what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        proxy.stall()
        try:
            wait_until(lambda: site.ledger.count("stopped x LeaseLost"), description="it stops by itself")
        finally:
            proxy.resume()
        with site.worker_here(thread_tools):
            record = site.wait_for(key, State.UNKNOWN)
            site.ledger.open_gate("x")

    assert record.fields.attempt == 1


def test_a_report_of_progress_that_is_lost_does_not_end_the_handler(site: Site, own_server: RealServer) -> None:
    """faults 8: a courtesy must not turn a call that changes the world into one in doubt."""
    registry = Registry()
    went_on: list[str] = []

    @registry.tool(effect="mutating")
    def work(call: Call) -> str:
        proxy.drop_request(b"halfway-there", times=1_000)
        call.progress(0.5, "halfway-there")
        went_on.append("on")
        return "done"

    with FaultProxy(own_server.socket) as proxy:
        through = Site(proxy.url, "progress", site.ledger.path.parent)
        with through.worker_here(registry, lease_ms=60_000):
            record = through.wait_for(through.submit("work"), State.SUCCEEDED)
        through.close()

    assert (record.fields.result, went_on) == ('"done"', ["on"])
