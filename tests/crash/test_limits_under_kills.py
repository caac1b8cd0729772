"""Limits and rates while workers are killed and people change them: never exceeded, and nothing leaks."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.crash.process_starter import ProcessStarter
from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer
from tests.support.store.live_store import LiveScene, LiveStore
from tests.support.store.scene import spec
from tests.support.wait import wait_until
from toolonce.ops.metrics.events import read_entry
from toolonce.store.model.rates import Rate
from toolonce.store.model.states import State
from toolonce.store.operations.controls import limit, rate
from toolonce.store.operations.operators import Actor
from toolonce.store.operations.runs import NotRun

EVERY_MS, EARLY_MS = 100.5, 300
"""Of 600 a minute; see `store/lua/_rates.lua`."""


def events(site: Site) -> list[dict[str, Any]]:
    """All transitions, in their order, with the server's times."""
    stored = site.connection.command("XRANGE", site.connection.space.events, "-", "+")
    return [event.facts for entry in stored for event in read_entry(entry)]


def wait_for_lines(site: Site, start: str, most: int) -> None:
    wait_until(lambda: site.ledger.count(start) >= most, 60, "calls run on")


def left_over(site: Site) -> list[str]:
    root = site.connection.space.root
    names = ("slots:*", "waiting:*", "woken:*", "saturated_*")
    return [key.decode() for name in names for key in site.connection.command("KEYS", root + name)]


def test_a_limit_holds_while_workers_are_killed_and_people_change_it(site: Site, starter: ProcessStarter) -> None:
    """Raised and lowered, cleared to the code's five and set again, with a worker killed at each change."""
    calls = site.submit_all([("five_at_most", {"what": n}) for n in range(80)])
    changes: list[tuple[int, int]] = [(0, 5)]
    workers = [starter.work(site, "--concurrency", "6") for _ in range(2)]
    for number, most in enumerate((2, 7, 1, None, 3)):
        wait_for_lines(site, "in ", 8 * (number + 1))
        set_at = site.connection.run(limit(site.connection.space, "tool:five_at_most", most, Actor("ann")))
        now = site.connection.command("TIME")
        at = set_at.at if set_at else int(now[0]) * 1000 + int(now[1]) // 1000
        changes.append((at, most or 5))
        workers.pop(0).kill9()
        workers.append(starter.work(site, "--concurrency", "6"))
    wait_until(site.at_rest, 90, "all calls come to rest")
    for worker in workers:
        worker.kill9()

    running = 0
    for event in events(site):
        if event.get("to") == "running":
            # a change counts from its moment on; within one ms the order is not known
            allowed = max(most for (at, most), after in zip(changes, [*changes[1:], (2**60, 0)], strict=True)
                          if at <= event["at"] and after[0] >= event["at"])  # fmt: skip
            assert running < allowed, f"{running} run, {allowed} may, and one more is claimed: {event}"
        running += (event.get("to") == "running") - (event.get("from") == "running")
    assert {site.state(key) for key in calls} <= {State.SUCCEEDED, State.UNKNOWN}
    assert len(site.ledger.lines("in ")) == len({*site.ledger.lines("in ")})
    assert left_over(site) == []


def test_a_rate_holds_over_several_workers_that_are_killed(site: Site, starter: ProcessStarter) -> None:
    calls = site.submit_all([("at_a_rate", {"what": n}) for n in range(40)])
    workers = [starter.work(site, "--concurrency", "4") for _ in range(3)]
    for most in (10, 20):
        wait_for_lines(site, "start ", most)
        workers.pop(0).kill9()
    for key in calls:
        site.wait_for(key, State.SUCCEEDED, timeout=60)
    for worker in workers:
        worker.kill9()

    assert check_starts(site) >= 40
    assert left_over(site) == []


@pytest.mark.parametrize("point", ["after_blmove", "after_claim", "before_settle", "after_settle", "in_recovery"])
@pytest.mark.parametrize("hit", [1, 3])
def test_a_worker_that_dies_at_any_point_keeps_no_slot_and_no_start(
    site: Site, starter: ProcessStarter, point: str, hit: int
) -> None:
    site.connection.run(limit(site.connection.space, "tool:at_a_rate", 2, Actor("ann")))
    calls = site.submit_all([("at_a_rate", {"what": n}) for n in range(10)])
    with starter.work(site, "--concurrency", "4", crash=f"{point}@{hit}") as worker:
        worker.wait_until_gone()
    with starter.work(site, "--concurrency", "4"):
        for key in calls:
            site.wait_for(key, State.SUCCEEDED, timeout=60)

    assert check_starts(site) >= 10
    assert left_over(site) == []


def test_calls_that_wait_for_a_rate_cost_hardly_a_claim_more_than_they_are(site: Site, starter: ProcessStarter) -> None:
    """Each claim takes its pointer out of the list of what is being claimed, and hardly anything else does so; but the
    calls that come with the end of another one are in no such list, and none of those that wait is in the queue."""
    claims_before = removals(site)
    calls = site.submit_all([("at_a_rate", {"what": n}) for n in range(40)])
    with starter.work(site, "--concurrency", "2"), starter.work(site, "--concurrency", "2"):
        for key in calls:
            site.wait_for(key, State.SUCCEEDED, timeout=60)

    slots = 4
    assert removals(site) - claims_before <= 1.1 * len(calls) + slots


def removals(site: Site) -> int:
    told = site.connection.command("INFO", "commandstats")
    text = told.decode() if isinstance(told, bytes) else str(told)
    found = re.search(r"cmdstat_lrem:calls=(\d+)|'cmdstat_lrem': {'calls': (\d+)", text)
    return int(found[1] or found[2]) if found else 0


def check_starts(site: Site) -> int:
    """Raise AssertionError where calls have started too soon one after the other; how many have started."""
    starts = [event["at"] for event in events(site) if event.get("op") == "claim" and event["tool"] == "at_a_rate"]
    for place, first in enumerate(starts):
        for behind, at in enumerate(starts[place:]):
            assert at - first >= behind * EVERY_MS - EARLY_MS - 1, f"{behind + 1} starts within {at - first} ms"
    return len(starts)


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_rate_survives_a_restart_of_redis(own_server: RealServer, is_changed: bool) -> None:
    search = spec("search", "read", rate="1/h")
    store = LiveStore(own_server.url, "restarted")
    scene = LiveScene(store)
    scene.publish(search)
    if is_changed:
        scene.run(rate(scene.space, "tool:search", Rate.parse("2/d"), Actor("ann")))
    scene.succeeded("a", of=search)
    own_server.restart()
    scene.submit("b", of=search)
    claimed = scene.claim(scene.pop() or "")
    store.close()

    assert isinstance(claimed, NotRun)
    assert claimed.detail == "rate:tool:search"
    assert claimed.due_ms is not None
    assert claimed.due_ms > 3_000_000
