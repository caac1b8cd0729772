"""The log alone tells what happened: a doubled delivery is not a doubled execution."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.support.crash.process_starter import ProcessStarter
from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.ops.metrics.events import read_entry
from toolonce.store.model.states import State
from toolonce.store.operations.operators import Actor, Expected, retry

Events = list[dict[str, Any]]


def _log(site: Site, key: str) -> Events:
    """The namespace's stream, of which the history is a part."""
    entries = site.connection.command("XRANGE", site.connection.space.events, "-", "+")
    return [event.facts for entry in entries for event in read_entry(entry) if event.call == key]


def _executions(events: Events) -> Counter[int]:
    """How often each fence was claimed; the number of fences is the number of executions."""
    return Counter(event["fence"] for event in events if event["op"] == "claim")


def _deliver_again(site: Site, key: str) -> None:
    queue = site.connection.space.queue_key("default")
    site.connection.command("RPUSH", queue, site.record(key).idempotency_key)
    wait_until(lambda: not site.connection.command("EXISTS", queue), description="the pointer is taken")
    intermediate = site.connection.space.intermediate_key("default")
    wait_until(lambda: not site.connection.command("EXISTS", intermediate), description="and claimed")


def test_a_doubled_delivery_shows_one_execution(site: Site, starter: ProcessStarter) -> None:
    with starter.work(site):
        key = site.submit("put", what="x")
        site.wait_for(key, State.SUCCEEDED)
        _deliver_again(site, key)
        _deliver_again(site, key)

    assert _executions(_log(site, key)) == {1: 1}
    assert [event["op"] for event in _log(site, key)] == ["admit", "claim", "settle"]
    assert site.ledger.count("put x") == 1


def test_a_doubled_execution_shows_both_with_their_fences_and_who_asked_for_the_second(
    site: Site, starter: ProcessStarter
) -> None:
    with starter.work(site, crash="after_effect") as worker:
        key = site.submit("put", what="x")
        worker.wait_until_gone()
    with starter.work(site):
        fence = site.wait_for(key, State.UNKNOWN).fence
        word = Actor("ann", "the bank knows nothing of it")
        site.connection.run(retry(site.connection.space, Expected(key, State.UNKNOWN, fence), word))
        site.wait_for(key, State.SUCCEEDED)

    log = _log(site, key)
    assert _executions(log) == {1: 1, 2: 1}
    assert site.ledger.count("put x") == 2
    between = [event for event in log if event["op"] == "retry"]
    assert [(event["actor"], event["reason"]) for event in between] == [("ann", "the bank knows nothing of it")]


def test_every_event_names_its_actor_and_time_and_each_move_its_states(site: Site, starter: ProcessStarter) -> None:
    with starter.work(site, crash="after_claim") as worker:
        key = site.submit("look", what="x")
        worker.wait_until_gone()
    with starter.work(site):
        record = site.wait_for(key, State.SUCCEEDED)

    log = _log(site, key)
    assert log == list(record.history)
    assert [event["op"] for event in log] == ["admit", "claim", "lose", "claim", "settle"]
    assert all(event["actor"] and event["at"] > 0 for event in log)
    assert [event["at"] for event in log] == sorted(event["at"] for event in log)
    moves = [(event.get("from"), event["to"]) for event in log]
    assert moves == [
        (None, "queued"), ("queued", "running"), ("running", "queued"), ("queued", "running"), ("running", "succeeded"),
    ]  # fmt: skip
    assert [event.get("fence") for event in log] == [None, 1, 1, 2, 2]
