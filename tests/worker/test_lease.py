"""Keeping the right to run: what is said of a lease that is gone."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from tests.support.redis_server import RealServer
from tests.support.wait import wait_until
from tests.support.workers import Site
from toolonce.store.execution import Delivery, Ending, Run, claim, settle
from toolonce.store.states import State
from toolonce.worker.lease import Hold, Leases


def settled_while_it_is_held(site: Site, leases: Leases) -> Hold:
    job = site.record(site.submit("put", what="x")).stored["ikey"]
    run = site.connection.run(claim(site.connection.space, Delivery(job, "default", "t", "w"), lease_ms=60_000))
    assert isinstance(run, Run)
    hold = leases.hold(run, time.monotonic())
    site.connection.run(settle(site.connection.space, run, Ending(State.SUCCEEDED, "1")))
    return hold


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


def test_renewals_go_on_after_a_server_has_refused_them(
    own_server: RealServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """G1: a full disk, or too few replicas for a while. A process that renewed no more would lose every lease since."""
    caplog.set_level(logging.WARNING, "toolonce.worker")
    site = Site(own_server.url, "leases", tmp_path)
    job = site.record(site.submit("put", what="x")).stored["ikey"]
    run = site.connection.run(claim(site.connection.space, Delivery(job, "default", "t", "w"), lease_ms=60_000))
    assert isinstance(run, Run)
    leases = Leases(site.connection, 300)
    hold = leases.hold(run, time.monotonic())
    leases.start()
    try:
        site.connection.command("CONFIG", "SET", "min-replicas-to-write", "1")
        wait_until(lambda: "could not be renewed" in caplog.text, description="a refused renewal")
        site.connection.command("CONFIG", "SET", "min-replicas-to-write", "0")
        refused_at = time.monotonic()
        wait_until(lambda: hold.asked_at > refused_at, description="a renewal after it")
    finally:
        leases.stop()
        site.close()

    assert hold.standing == "kept"
