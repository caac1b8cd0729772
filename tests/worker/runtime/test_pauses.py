"""Pauses as workers live them: a paused queue is not read, the others are, and a resumed one is read again."""

from __future__ import annotations

from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations.controls import pause, resume
from toolonce.store.operations.operators import Actor
from toolonce.worker import Registry

ANN = Actor("ann")
QUEUES = ("default", "billing")


def registry() -> Registry:
    made = Registry()
    made.tool(name="look", effect="read")(lambda: "seen")
    made.tool(name="bill", effect="read", queue="billing")(lambda: "billed")
    return made


def pointers(site: Site, queue: str) -> int:
    return int(site.connection.command("LLEN", site.connection.space.queue_key(queue)))


def say(site: Site, what: str, target: str) -> None:
    site.connection.run({"pause": pause, "resume": resume}[what](site.connection.space, target, ANN))


def test_a_paused_queue_is_not_read_while_the_others_are(site: Site) -> None:
    say(site, "pause", "queue:billing")
    with site.worker_here(registry(), queues=QUEUES) as process:
        reader = process.queue_reader
        wait_until(lambda: reader.paused == {"billing"}, description="the worker knows")
        billed, seen = [site.submit("bill") for _ in range(10)], [site.submit("look") for _ in range(40)]
        for key in seen:
            site.wait_for(key, State.SUCCEEDED)
        assert pointers(site, "billing") >= 6, "each of the four slots has read one at most: it was waiting for that"
        say(site, "resume", "queue:billing")
        for key in billed:
            site.wait_for(key, State.SUCCEEDED)


def test_what_a_worker_reads_from_a_queue_before_it_hears_of_the_pause_is_parked(site: Site) -> None:
    with site.worker_here(registry(), queues=QUEUES) as process:
        site.wait_for(site.submit("bill"), State.SUCCEEDED)
        say(site, "pause", "queue:billing")
        key = site.submit("bill")
        wait_until(lambda: pointers(site, "billing") == 0 or process.queue_reader.paused, description="one of the two")
        assert site.state(key) is State.QUEUED
        say(site, "resume", "queue:billing")
        site.wait_for(key, State.SUCCEEDED)


def test_a_worker_all_of_whose_queues_are_paused_waits_and_goes_on(site: Site) -> None:
    for queue in QUEUES:
        say(site, "pause", f"queue:{queue}")
    with site.worker_here(registry(), queues=QUEUES) as process:
        wait_until(lambda: process.queue_reader.paused == set(QUEUES), description="the worker knows")
        key = site.submit("look")
        say(site, "resume", "queue:default")
        site.wait_for(key, State.SUCCEEDED)


def test_a_burst_ends_at_a_paused_queue_and_leaves_its_calls_there(site: Site) -> None:
    site.publish(registry())
    say(site, "pause", "queue:billing")
    seen, billed = site.submit("look"), site.submit("bill")
    with site.worker_here(registry(), queues=QUEUES, burst=True) as process:
        site.wait_for(seen, State.SUCCEEDED)
        wait_until(lambda: not process.has_room, description="it ends")
    assert site.state(billed) is State.QUEUED


def test_calls_of_a_paused_tool_are_parked_and_hold_up_nobody(site: Site) -> None:
    say(site, "pause", "tool:bill")
    with site.worker_here(registry(), queues=QUEUES, concurrency=1):
        parked = [site.submit("bill") for _ in range(30)]
        wait_until(lambda: pointers(site, "billing") == 0, description="their pointers are taken")
        wait_until(lambda: {site.record(key).fields.reason for key in parked} == {"paused"}, description="parked")
        site.wait_for(site.submit("look"), State.SUCCEEDED)
        say(site, "resume", "tool:bill")
        for key in parked:
            site.wait_for(key, State.SUCCEEDED)
