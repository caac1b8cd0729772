"""Deaths of workers and servers while calls are parked and while they come back: none is lost, none runs twice."""

from __future__ import annotations

from collections import Counter

from tests.support.crash.process_starter import ProcessStarter
from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations.controls import pause, paused_calls, resume
from toolonce.store.operations.operators import Actor
from toolonce.store.operations.recovery import tick

TARGET = "tool:put"
CALLS = 60
ANN = Actor("ann")
ELSEWHERE = ("--queue", "idle")
"""A worker that sweeps and runs nothing."""


def parked(site: Site) -> int:
    return site.connection.run(paused_calls(site.connection.space, [TARGET]))[TARGET].parked


def submit_paused(site: Site) -> list[str]:
    site.connection.run(pause(site.connection.space, TARGET, ANN))
    return site.submit_all([("put", {"what": f"{n}"}) for n in range(CALLS)])


def check_each_ran_once(site: Site, keys: list[str]) -> None:
    for key in keys:
        site.wait_for(key, State.SUCCEEDED, timeout=60)
    assert Counter(site.ledger.lines("put")) == {f"put {n}": 1 for n in range(CALLS)}
    assert site.at_rest()
    assert parked(site) == 0


def test_workers_that_are_killed_while_they_park_calls_lose_none(site: Site, starter: ProcessStarter) -> None:
    """Each dies with a pointer in its hand."""
    keys = submit_paused(site)
    for hit in (1, 7, 15):
        with starter.work(site, crash=f"after_blmove@{hit}") as worker:
            worker.wait_until_gone()
    assert 0 < parked(site) < CALLS
    with starter.work(site):
        wait_until(lambda: parked(site) == CALLS, 60, "the pointers of the dead are found, and all calls parked")
        assert site.ledger.lines() == []
        site.connection.run(resume(site.connection.space, TARGET, ANN))
        check_each_ran_once(site, keys)


def test_workers_that_are_killed_while_calls_come_back_lose_none(site: Site, starter: ProcessStarter) -> None:
    keys = submit_paused(site)
    with starter.work(site):
        wait_until(lambda: parked(site) == CALLS, 60, "all are parked")
    site.connection.run(resume(site.connection.space, TARGET, ANN))
    site.connection.run(tick(site.connection.space, most=20))  # the last step of a worker that died then
    assert parked(site) == CALLS - 20
    for hit in (1, 2, 3):
        with starter.work(site, *ELSEWHERE, crash=f"in_recovery@{hit}") as worker:
            worker.wait_until_gone()
    for _ in range(2):
        with starter.work(site, crash="after_blmove") as worker:
            worker.wait_until_gone()
    with starter.work(site):
        check_each_ran_once(site, keys)


def test_a_server_that_is_killed_while_calls_are_parked_and_while_they_come_back_keeps_all(
    own_server: RealServer, own_site: Site, starter: ProcessStarter
) -> None:
    site = own_site
    keys = submit_paused(site)
    with starter.work(site):
        wait_until(lambda: parked(site) > 0, 60, "some are parked")
        own_server.kill9()
        own_server.start()
        wait_until(lambda: parked(site) == CALLS, 60, "all are parked")
    site.connection.run(resume(site.connection.space, TARGET, ANN))
    site.connection.run(tick(site.connection.space, most=20))
    own_server.kill9()
    own_server.start()
    assert parked(site) == CALLS - 20
    with starter.work(site):
        check_each_ran_once(site, keys)


def test_a_pause_and_a_resume_whose_replies_are_lost_count_once(own_server: RealServer, own_site: Site) -> None:
    """The connection sends them again."""
    site, space = own_site, own_site.connection.space
    first = site.connection.run(pause(space, TARGET, ANN))
    assert site.connection.run(pause(space, TARGET, ANN)) == first
    own_server.kill9()
    own_server.start()
    assert site.connection.run(pause(space, TARGET, ANN)) == first
    over = site.connection.run(resume(space, TARGET, ANN))
    assert over
    assert over.since == first.since if first else False
    own_server.kill9()
    own_server.start()
    assert site.connection.run(resume(space, TARGET, ANN)) == over
