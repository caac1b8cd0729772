"""Keeping the right to run: what is said of a lease that is gone."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations.operators import Actor, Expected, cancel
from toolonce.store.operations.runs import Delivery, Ending, Run, claim, settle
from toolonce.worker.execution.lease import HEARD_S, LeaseHandle, Leases


def claimed(site: Site) -> Run:
    job = site.record(site.submit("put", what="x")).idempotency_key
    run = site.connection.run(claim(site.connection.space, Delivery(job, "default", "t", "w"), lease_ms=60_000))
    assert isinstance(run, Run)
    return run


def settled_while_it_is_held(site: Site, leases: Leases) -> LeaseHandle:
    run = claimed(site)
    lease = leases.keep(LeaseHandle(run, time.monotonic()))
    site.connection.run(settle(site.connection.space, run, Ending(State.SUCCEEDED, "1")))
    return lease


@pytest.mark.parametrize("ending", [False, True])
def test_a_lease_that_ended_with_the_last_word_is_not_called_lost(
    site: Site, caplog: pytest.LogCaptureFixture, ending: bool
) -> None:
    """A renewal may cross the settle of the same run; the settle's own answer says how that went."""
    caplog.set_level(logging.WARNING, "toolonce.worker")
    leases = Leases(site.connection, 60_000)
    settled_while_it_is_held(site, leases).ending = ending

    leases.renew_now()

    assert ("is lost" in caplog.text) is not ending


def test_a_process_that_wakes_up_enters_nothing_while_it_is_still_hearing_that_its_lease_is_lost(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    """G1: the renewal's thread has heard it and is about to say so, and the slot's thread asks whether it may enter."""
    leases = Leases(site.connection, 1)
    lease = settled_while_it_is_held(site, leases)
    asked: list[bool] = []

    class AsksMeanwhile(logging.Handler):
        def emit(self, _: logging.LogRecord) -> None:
            asked.append(Leases(site.connection, 60_000).is_kept(lease, site.connection.run))

    handler = AsksMeanwhile()
    logging.getLogger("toolonce.worker").addHandler(handler)
    try:
        leases.renew_now()
    finally:
        logging.getLogger("toolonce.worker").removeHandler(handler)

    assert asked == [False]


def test_an_older_answer_does_not_bring_back_a_lease_that_is_lost(site: Site) -> None:
    lease = LeaseHandle(claimed(site), 0.0)

    assert [lease.hear("lost", 1.0), lease.hear("kept", 0.5), lease.hear("kept", 2.0)] == [True, False, False]
    assert (lease.standing, lease.asked_at) == ("lost", 0.0)


def test_renewals_go_on_after_a_server_has_refused_them(
    own_server: RealServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """G1: a full disk, or too few replicas for a while. A process that renewed no more would lose every lease since."""
    caplog.set_level(logging.WARNING, "toolonce.worker")
    site = Site(own_server.url, "leases", tmp_path)
    run = claimed(site)
    leases = Leases(site.connection, 300)
    lease = leases.keep(LeaseHandle(run, time.monotonic()))
    leases.start()
    try:
        site.connection.command("CONFIG", "SET", "min-replicas-to-write", "1")
        wait_until(lambda: "could not be renewed" in caplog.text, description="a refused renewal")
        site.connection.command("CONFIG", "SET", "min-replicas-to-write", "0")
        refused_at = time.monotonic()
        wait_until(lambda: lease.asked_at > refused_at, description="a renewal after it")
    finally:
        leases.stop(time.monotonic() + 2)
        site.close()

    assert lease.standing == "kept"


def test_a_lease_that_nobody_confirms_is_lost_once_it_has_passed(own_server: RealServer, tmp_path: Path) -> None:
    """faults 8: the last answer, from before the store went away, says nothing about now."""
    site = Site(own_server.url, "leases", tmp_path)
    leases = Leases(site.connection, 300)
    lease = leases.keep(LeaseHandle(claimed(site), time.monotonic()))
    try:
        own_server.pause()
        heard_at_once = leases.check(lease)
        wait_until(lambda: time.monotonic() - lease.asked_at > 0.3, description="a lease has passed")
        heard_later = leases.check(lease)
        own_server.resume()
        heard_again = leases.check(lease)
    finally:
        site.close()

    assert (heard_at_once, heard_later, heard_again) == ("kept", "lost", "kept")


def test_the_answer_to_an_earlier_question_does_not_undo_a_later_one(site: Site) -> None:
    """faults 8: a renewal that was on its way when the lease went over to someone else."""
    leases = Leases(site.connection, 60_000)
    lease = leases.keep(LeaseHandle(claimed(site), time.monotonic()))
    site.connection.run(settle(site.connection.space, lease.run, Ending(State.SUCCEEDED, "1")))
    earlier = time.monotonic()

    leases.renew_now()
    leases._heard([lease], ["kept"], earlier)

    assert lease.standing == "lost"


def test_a_stop_is_heard_by_the_renewal_alone_however_long_the_lease(site: Site) -> None:
    """faults 8: the word that announces a stop may be lost; a lease of an hour is renewed often enough all the same."""
    leases = Leases(site.connection, 3_600_000)
    lease = leases.keep(LeaseHandle(claimed(site), time.monotonic()))
    leases.start()
    try:
        site.connection.run(cancel(site.connection.space, Expected(lease.run.call), Actor("ann", "changed my mind")))
        wait_until(lambda: lease.standing == "cancel", description="the stop is heard")
    finally:
        leases.stop(time.monotonic() + 2)

    assert HEARD_S < 2
