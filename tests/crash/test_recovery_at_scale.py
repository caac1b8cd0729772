"""Recovery with much to mend is done in small steps: what is new goes in between."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations.operation import load
from toolonce.store.operations.runs import Delivery, claim
from toolonce.worker import Registry

ORPHANS = 20_000
_AT_ONCE = 100

tools = Registry()


@tools.tool(effect="mutating", timeout=0.1, deadline=3600)
def orphaned() -> None:
    """Is claimed by a worker that is gone."""


@tools.tool(effect="read")
def look() -> str:
    """Is new."""
    return "seen"


def _leave_orphans(site: Site, server: redis.Redis) -> None:
    """Calls that a worker has claimed and that have been over their lease since."""
    space = site.connection.space
    site.publish(tools)
    server.script_load(load("claim").text)
    for _ in range(ORPHANS // _AT_ONCE):
        outcomes = site.submit_outcomes([("orphaned", {})] * _AT_ONCE)
        with server.pipeline(transaction=False) as pipe:
            for outcome in outcomes:
                taken = Delivery(outcome.idempotency_key, "default", outcome.key, "gone")
                pipe.execute_command(*claim(space, taken, lease_ms=1).command())  # type: ignore[no-untyped-call]
            pipe.delete(space.queue_key("default"))
            pipe.execute()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_twenty_thousand_orphans_do_not_hold_up_a_new_call(namespace: str, tmp_path: Path) -> None:
    with RealServer(appendfsync="no") as server:  # it is about the order of things; no fsync is needed for that
        site = Site(server.url, namespace, tmp_path)
        with server.client() as client:
            _leave_orphans(site, client)
        new = site.submit("look")
        with site.worker_here(tools):
            site.wait_for(new, State.SUCCEEDED, timeout=60)
            still_to_mend = site.connection.command("ZCARD", f"{{{namespace}}}:leases")
            wait_until(lambda: site.stats().counts.get("state:unknown") == ORPHANS, 200, "all orphans are mended")

        assert still_to_mend > 0
        assert site.stats().balanced
        assert not site.connection.command("ZCARD", f"{{{namespace}}}:leases")
        site.close()
