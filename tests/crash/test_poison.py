"""A call that kills every worker that takes it is taken a bounded number of times, and says so."""

from __future__ import annotations

from tests.support.crash.process_starter import ProcessStarter
from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.store.model.states import State

ATTEMPTS = 3
"""Of `look`, as its tool declares."""


def _kill_workers(site: Site, starter: ProcessStarter, key: str, times: int) -> None:
    for attempt in range(1, times + 1):
        with starter.work(site, crash="after_effect") as worker:
            worker.wait_until_gone()
        assert site.record(key).fields.attempt == attempt


def test_a_read_that_kills_its_workers_is_given_up_after_its_attempts_and_others_go_on(
    site: Site, starter: ProcessStarter
) -> None:
    """O8-06: the attempt counts when it is claimed, so one that never comes back counts too."""
    poison = site.submit("look", what="poison")
    _kill_workers(site, starter, poison, ATTEMPTS)
    behind = site.submit("put", what="behind")  # not before: a worker that is to die of the poison would die of it
    site.connection.command("LREM", site.connection.space.queue_key("default"), 0, site.record(behind).idempotency_key)
    with starter.work(site):
        failed = site.wait_for(poison, State.FAILED)
        site.wait_for(behind, State.SUCCEEDED)

    assert failed.failure
    assert failed.failure.code == "attempts_exhausted"
    assert "was lost: its lease ran out" in failed.failure.message
    assert site.ledger.count("look poison") == ATTEMPTS
    assert [event["op"] for event in failed.history] == ["admit", *["claim", "lose"] * ATTEMPTS]


def test_a_mutating_call_that_kills_its_worker_is_in_doubt_after_the_first(site: Site, starter: ProcessStarter) -> None:
    """O8-06."""
    poison = site.submit("put", what="poison")
    _kill_workers(site, starter, poison, 1)
    with starter.work(site), starter.work(site), starter.work(site):
        record = site.wait_for(poison, State.UNKNOWN)
        wait_until(site.at_rest, description="three workers have nothing to do")

    assert record.failure
    assert "was lost" in record.failure.message
    assert site.ledger.count("put poison") == 1
    assert site.state(poison) is State.UNKNOWN
