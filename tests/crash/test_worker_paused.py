"""A worker that was stopped for longer than its lease, and wakes up late."""

from __future__ import annotations

from tests.support.processes.tools_under_test import thread_tools
from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.store.model.states import State


def test_a_worker_paused_past_its_lease_settles_late_and_nothing_runs_twice(site: Site) -> None:
    with site.worker() as paused:
        key = site.submit("put_and_wait", what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        paused.pause()
        with site.worker_here(thread_tools):
            site.wait_for(key, State.UNKNOWN)
            site.ledger.open_gate("x")
            paused.resume()

            record = site.wait_for(key, State.SUCCEEDED)

    assert site.ledger.count("put x") == 1
    assert record.fields.attempt == 1
    assert record.history[-1]["reason"] == "late"


def test_a_late_worker_cannot_overwrite_an_operator(site: Site) -> None:
    from toolonce.store.operations.operators import Actor, Expected, resolve

    with site.worker() as paused:
        key = site.submit("put_and_wait", what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        paused.pause()
        with site.worker_here(thread_tools):
            fence = site.wait_for(key, State.UNKNOWN).fence
            word = Actor("ann", "asked the bank")
            site.connection.run(resolve(site.connection.space, Expected(key, State.UNKNOWN, fence), '"by hand"', word))
            site.ledger.open_gate("x")
            paused.resume()

            wait_until(lambda: site.record(key).evidence, description="the late word is kept as evidence")

    record = site.record(key)
    assert record.fields.result == '"by hand"'
    assert record.evidence[0]["result"] == '"x"'


def test_a_worker_stopped_between_taking_and_claiming_comes_too_late(site: Site) -> None:
    """O7-06: what was cancelled in that gap has no effect, whoever wakes up then."""
    from toolonce.store.operations.operators import Actor, Expected, cancel

    with site.worker(crash="after_blmove:stop") as stopped:
        key = site.submit("put", what="x")
        queue = site.connection.space.queue_key("default")
        wait_until(lambda: not site.connection.command("LLEN", queue), description="the pointer is taken")
        stopped.wait_until_stopped()
        done = site.connection.run(cancel(site.connection.space, Expected(key), Actor("ann", "changed my mind")))
        stopped.resume()
        wait_until(
            lambda: not site.connection.command("LLEN", site.connection.space.intermediate_key("default")),
            description="the claim was asked for",
        )

    assert done.verdict == "cancelled"
    assert site.state(key) is State.CANCELLED
    assert site.ledger.count() == 0
