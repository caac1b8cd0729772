"""A worker killed in the middle of something; what it left is mended by any other, and no effect happens twice."""

from __future__ import annotations

from tests.support.processes.tools_under_test import thread_tools
from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.store.model.states import State


def _finish(site: Site) -> None:
    """Let another worker mend and finish what there is."""
    with site.worker_here(thread_tools):
        wait_until(site.at_rest, 20, "every call is at rest, and admitted = settled + open")


def test_redelivery_after_the_effect_does_not_run_it_again(site: Site) -> None:
    """O2-06: inside the lease, after it, and whenever else the pointer comes again."""
    with site.worker(crash="after_effect") as worker:
        key = site.submit("put", what="x")
        worker.wait()
    job = site.record(key).idempotency_key
    queue = site.connection.space.queue_key("default")

    site.connection.command("RPUSH", queue, job, job)
    with site.worker_here(thread_tools):
        site.wait_for(key, State.UNKNOWN)
        site.connection.command("RPUSH", queue, job, job)
        wait_until(lambda: not site.connection.command("LLEN", queue), description="the pointers are taken")

    assert site.state(key) is State.UNKNOWN
    assert site.ledger.count("put x") == 1


def test_a_handler_killed_inside_is_noticed_within_leases_not_within_its_limit(site: Site) -> None:
    """O2-03: the tool may run a minute, the lease is a second."""
    with site.worker() as worker:
        mutating = site.submit("put_and_wait", what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        worker.kill9()

    _finish(site)

    assert site.state(mutating) is State.UNKNOWN
    assert site.ledger.count("put x") == 1


def test_a_worker_killed_in_recovery_is_replaced_by_any_other(site: Site) -> None:
    with site.worker(crash="after_effect") as worker:
        key = site.submit("put", what="x")
        worker.wait()
    with site.worker(crash="in_recovery@8") as sweeper:
        sweeper.wait()

    _finish(site)

    assert site.state(key) is State.UNKNOWN


def test_a_worker_killed_while_renewing_loses_nothing(site: Site) -> None:
    with site.worker(crash="in_renew@2") as worker:
        key = site.submit("put_and_wait", what="x")
        assert worker.wait() == -9

    _finish(site)

    assert site.state(key) is State.UNKNOWN
    assert site.ledger.count("put x") == 1
