"""A worker that takes the next call with the end of the one before: deaths in between, and lost answers."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.support.crash.process_starter import ProcessStarter
from tests.support.processes.workers import Site
from tests.support.servers.proxy import FaultProxy
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations.operation import load


def submitted(site: Site, tool: str = "put", calls: int = 3) -> list[str]:
    return [site.submit(tool, what=str(number)) for number in range(calls)]


def check_each_once(site: Site, keys: list[str]) -> None:
    for key in keys:
        site.wait_for(key, State.SUCCEEDED)
    assert sorted(site.ledger.lines()) == [f"put {number}" for number in range(len(keys))]
    assert site.at_rest()


def test_an_end_whose_answer_is_lost_gives_the_same_next_call_again(
    own_server: RealServer, site: Site, starter: ProcessStarter, tmp_path: Path
) -> None:
    own = Site(own_server.url, "next", tmp_path)
    keys = submitted(own)
    with FaultProxy(own_server.socket) as proxy:
        own.connection.command("SCRIPT", "LOAD", load("settle").text)
        proxy.drop_reply_to(load("settle").sha.encode(), times=2)
        with starter.work(own, "--redis", proxy.url):
            check_each_once(own, keys)
        assert not proxy.armed
    assert [own.record(key).fields.attempt for key in keys] == [1, 1, 1]
    own.close()


def test_the_next_call_of_a_killed_worker_is_in_doubt_and_the_others_go_on(site: Site, starter: ProcessStarter) -> None:
    """It was claimed and not entered, which nobody can know."""
    keys = submitted(site)
    with starter.work(site, crash="after_claim@2") as worker:
        worker.wait_until_gone()
    assert [site.state(key) for key in keys] == [State.SUCCEEDED, State.RUNNING, State.QUEUED]
    with starter.work(site):
        site.wait_for(keys[1], State.UNKNOWN)
        site.wait_for(keys[2], State.SUCCEEDED)

    assert site.ledger.lines() == ["put 0", "put 2"]


def test_a_drain_finishes_or_gives_back_the_call_in_hand(site: Site, starter: ProcessStarter) -> None:
    keys = submitted(site)
    with starter.work(site, crash="after_settle:stop") as worker:
        worker.wait_until_stopped()
        taken = site.state(keys[1])
        worker.signal(signal.SIGTERM)
        worker.resume()
        worker.wait_until_gone()
    assert taken is State.RUNNING
    with starter.work(site):
        check_each_once(site, keys)


def test_a_server_that_is_killed_between_the_two_calls_changes_nothing(
    own_server: RealServer, starter: ProcessStarter, tmp_path: Path
) -> None:
    own = Site(own_server.url, "next", tmp_path)
    keys = submitted(own)
    with starter.work(own, crash="after_settle:stop") as worker:
        worker.wait_until_stopped()
        own_server.restart()
        worker.resume()
        check_each_once(own, keys)
    own.close()


def test_a_worker_that_wakes_up_late_does_not_enter_its_next_call(site: Site, starter: ProcessStarter) -> None:
    keys = submitted(site)
    with starter.work(site, crash="after_settle:stop") as late:
        late.wait_until_stopped()
        with starter.work(site):
            wait_until(lambda: site.state(keys[1]) is State.UNKNOWN, description="its lease runs out")
            site.wait_for(keys[2], State.SUCCEEDED)
            late.resume()
            site.wait_for(keys[1], State.FAILED)

    failure = site.record(keys[1]).failure
    assert failure
    assert failure.code == "not_entered"
    assert sorted(site.ledger.lines()) == ["put 0", "put 2"]
