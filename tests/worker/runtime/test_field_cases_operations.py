"""Faults that others met in operation (group 8), those that concern a worker and are not tested elsewhere."""

from __future__ import annotations

import time

import pytest

from tests.support.processes.tools_under_test import thread_tools
from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.store.connections.connection import Connection
from toolonce.store.connections.durability import Durability
from toolonce.store.model.errors import StoreUnsafe
from toolonce.store.model.states import State
from toolonce.worker import Registry
from toolonce.worker.runtime.process import Options, run_worker


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-lru"])
def test_a_server_that_may_evict_is_refused_at_the_start(policy: str) -> None:
    """O8-03."""
    with RealServer(maxmemory_policy=policy) as server:
        connection = Connection(server.url)
        with pytest.raises(StoreUnsafe, match="may evict records"):
            run_worker(connection, thread_tools)
        connection.close()


def test_a_server_that_keeps_nothing_is_refused_unless_someone_says_that_it_may_forget() -> None:
    with RealServer(appendonly="no") as server:
        connection = Connection(server.url)
        with pytest.raises(StoreUnsafe, match="keeps nothing on disk"):
            run_worker(connection, thread_tools)
        assert run_worker(connection, thread_tools, Options(durability=Durability.VOLATILE, burst=True)) == 0
        connection.close()


@pytest.mark.parametrize("minutes", [10, -10])
def test_a_wrong_clock_takes_over_nothing_and_delays_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    """O8-07: a second worker, in this process, whose clock is wrong, while the first runs a long call."""
    with site.worker() as first:
        long = site.submit("put_and_wait", what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        true_time = time.time
        monkeypatch.setattr(time, "time", lambda: true_time() + 60 * minutes)
        with site.worker_here(thread_tools):
            start = site.record(long)
            wait_until(lambda: site.record(long).read_at > start.read_at + 2_500, description="leases have gone by")
            assert site.state(long) is State.RUNNING
            first.kill9()
            site.wait_for(long, State.UNKNOWN)
        monkeypatch.undo()

    assert site.ledger.count("put x") == 1


def test_a_backlog_past_its_deadline_is_answered_and_not_run(site: Site) -> None:
    """O8-09."""
    registry, entered = Registry(), []

    @registry.tool(deadline=0.2)
    def late(n: int) -> None:
        entered.append(n)

    site.publish(registry)
    keys = site.submit_all([("late", {"n": n}) for n in range(50)])
    admitted = site.record(keys[-1]).read_at
    wait_until(lambda: site.record(keys[-1]).read_at > admitted + 250, description="the deadline has passed")
    with site.worker_here(registry):
        records = [site.wait_for(key, State.EXPIRED) for key in keys]

    assert all(record.failure and "deadline passed" in record.failure.message for record in records)
    assert entered == []


def test_a_tool_that_is_said_to_need_no_deadline_gets_one_all_the_same() -> None:
    """O8-09."""
    registry = Registry()
    registry.tool(name="t")(lambda: None)

    assert registry.specs()[0].deadline_ms > 0
