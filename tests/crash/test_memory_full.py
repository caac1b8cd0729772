"""A store filled to the brim while no worker lives: it works itself off when one comes back."""

from __future__ import annotations

import pytest

from tests.support.processes.tools_under_test import thread_tools
from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.store.model.errors import StoreFull

TURN = 50


def fill(site: Site, server: RealServer) -> int:
    """Submit until nothing more is taken; the number of calls."""
    with server.client() as client:
        client.config_set("maxmemory", client.info("memory")["used_memory"] + 8_000_000)
    for turn in range(100):
        try:
            site.submit_all([("put", {"what": f"{turn}.{number}"}) for number in range(TURN)])
        except StoreFull:
            return turn * TURN
    pytest.fail("the server never ran full")


@pytest.mark.parametrize("brim", ["by the harness alone", "by others too"])
def test_a_store_filled_to_the_brim_while_no_worker_lives_works_itself_off(
    own_server: RealServer, own_site: Site, brim: str
) -> None:
    """faults 15: by others too: Redis refuses plain writes, BLMOVE and registration among them."""
    submitted = fill(own_site, own_server)
    with own_server.client() as client:
        if brim == "by others too":
            client.config_set("maxmemory", int(client.info("memory")["used_memory"] * 0.98))
        with own_site.worker_here(thread_tools):
            wait_until(own_site.at_rest, 60, "every call is at rest, and admitted = settled + open")

    assert submitted > TURN
    assert own_site.stats().counts["state:succeeded"] == submitted
    assert sorted(own_site.ledger.lines()) == sorted(
        f"put {turn}.{number}" for turn in range(submitted // TURN) for number in range(TURN)
    )
