"""Faults of other systems in operation (group 8) and in their locks (group 2), on real processes."""

from __future__ import annotations

import signal

import pytest

from tests.support.crash.process_starter import ProcessStarter
from tests.support.processes.processes import Child
from tests.support.processes.tools_under_test import VARIABLE
from tests.support.processes.workers import TOOLS, Site
from tests.support.servers.proxy import FaultProxy
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations.operation import load, names
from toolonce.worker import Registry

_SHIFTED_CLOCK = """
import sys, time
shift, *words = sys.argv[1:]
now = time.time
time.time = lambda: now() + float(shift)
from toolonce.ops.cli import main
sys.exit(main(words))
"""


def _work(site: Site, *more: str) -> tuple[str, ...]:
    return ("work", "--tools", TOOLS, "--redis", site.url, "--namespace", site.namespace, "--lease", "500ms", *more)


def test_a_stop_that_ends_in_a_kill_leaves_the_call_in_doubt_at_once(site: Site) -> None:
    """O8-01: the grace is shorter than the work. What a supervisor's kill would hide is said before it comes."""
    with site.worker(more=("--grace", "1s"), lease_ms=60_000) as worker:
        key = site.submit("put_and_wait", what="x")
        waiting = site.submit("put_and_wait", what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        worker.signal(signal.SIGTERM)
        record = site.wait_for(key, State.UNKNOWN)
        site.wait_for(waiting, State.QUEUED, State.UNKNOWN)
        worker.kill9()

    assert record.failure
    assert "shutdown" in record.failure.message
    assert site.ledger.count("put x") <= 2
    assert site.state(waiting) in (State.QUEUED, State.UNKNOWN)


@pytest.mark.parametrize("shift_s", [600, -600])
def test_a_worker_whose_clock_is_wrong_takes_nothing_over_and_delays_nothing(site: Site, shift_s: int) -> None:
    """O8-07: only Redis time counts."""
    env = {VARIABLE: str(site.ledger.path)}
    with site.worker(lease_ms=1_000) as right:
        key = site.submit("put_and_wait", what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        with Child.python("-c", _SHIFTED_CLOCK, str(shift_s), *_work(site), env=env) as wrong:
            wrong.wait_for_line("serves")
            started = site.record(key).read_at
            wait_until(lambda: site.record(key).read_at > started + 1_500, description="more than a lease has passed")
            assert site.state(key) is State.RUNNING  # alive, whatever the other one's clock says

            right.kill9()
            record = site.wait_for(key, State.UNKNOWN)  # dead, and that is noticed too
            site.wait_for(site.submit("refuse_first", what="y"), State.SUCCEEDED)  # a retry becomes due

    assert record.fields.attempt == 1
    assert site.ledger.count("put x") == 1


def test_a_backlog_past_its_deadline_is_answered_and_not_run(site: Site) -> None:
    """O8-09: the workers come back too late."""
    entered: list[int] = []
    tools = Registry()

    @tools.tool(effect="mutating", deadline=0.2, timeout=0.1)
    def remind(number: int) -> None:
        entered.append(number)

    site.publish(tools)
    keys = [key for n in range(4) for key in site.submit_all([("remind", {"number": n})] * 50)]
    last = site.record(keys[-1])
    wait_until(lambda: site.record(keys[-1]).read_at > last.read_at + 200, description="the deadline has passed")
    with site.worker_here(tools):
        for key in keys:
            site.wait_for(key, State.EXPIRED)

    failure = site.record(keys[0]).failure
    assert failure
    assert failure.message.startswith("not run")
    assert not entered


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-lru"])
def test_a_server_that_may_evict_records_is_refused_at_the_start(
    policy: str, starter: ProcessStarter, site: Site
) -> None:
    """O8-03."""
    with RealServer(maxmemory="50mb", maxmemory_policy=policy) as server:
        worker = starter.start("toolonce", "work", "--tools", TOOLS, "--redis", server.url)
        worker.wait_until_gone()

    assert policy in worker.output
    assert "noeviction" in worker.output


def test_a_claim_whose_reply_is_lost_is_the_claimants_own_and_nobody_waits_for_a_lease(
    site: Site, redis_server: RealServer, starter: ProcessStarter
) -> None:
    """O2-10: sent again, it finds itself the owner."""
    with redis_server.client() as server:
        for name in names():
            server.script_load(load(name).text)
    with FaultProxy(redis_server.socket) as proxy:
        proxy.drop_reply_to(load("claim").sha.encode(), times=3)
        worker = starter.start(
            "toolonce", "work", "--tools", TOOLS, "--redis", proxy.url, "--namespace", site.namespace,
            "--lease", "600s", env={VARIABLE: str(site.ledger.path)},
        )  # fmt: skip
        with worker:
            record = site.wait_for(site.submit("put", what="x"), State.SUCCEEDED)
        assert not proxy.armed

    assert record.fence == 1
    assert [event["op"] for event in record.history] == ["admit", "claim", "settle"]
    assert site.ledger.count("put x") == 1


def test_a_sweeper_that_was_stopped_mends_nothing_twice(site: Site, starter: ProcessStarter) -> None:
    """O2-04: one that held the sweep is stopped in it, another one goes on, and the first wakes up."""
    with starter.work(site, crash="after_effect") as worker:
        key = site.submit("look", what="x")
        worker.wait_until_gone()
    wait_until(lambda: (site.record(key).lease_left_ms or 0) < 0, description="its lease runs out")
    with starter.work(site, crash="in_recovery:stop@1") as stopped:
        stopped.wait_until_stopped()
        with starter.work(site):
            site.wait_for(key, State.SUCCEEDED)
            stopped.resume()
            stopped.drain()
            site.wait_for(site.submit("put", what="after"), State.SUCCEEDED)

    assert site.record(key).fields.attempt == 2
    assert site.ledger.count("look x") == 2
    assert site.stats().balanced


def test_a_lease_lives_without_its_workers_registration(site: Site) -> None:
    """O2-08 (b): RQ's picture of the worker is deleted; no cleaner takes what is alive."""
    with site.worker(lease_ms=600) as holder, site.worker(lease_ms=600):
        key = site.submit("put_and_wait", what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        first = site.record(key)
        site.connection.command("DEL", site.connection.space.rq_worker(first.fields.worker))
        wait_until(lambda: site.record(key).read_at > first.read_at + 1_500, description="more than two leases")
        still = site.record(key)
        site.ledger.open_gate("x")
        site.wait_for(key, State.SUCCEEDED)
        assert holder.exit_code is None

    assert still.state is State.RUNNING
    assert still.fence == first.fence
    assert site.ledger.count("put x") == 1
