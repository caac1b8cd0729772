"""Workers killed while calls follow another one by a unique key: one effect while the key is held, one answer each."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.processes.unique_tools import TOOLS, plan, tools
from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations.operators import Actor, Expected, resolve

ORDER = {"order": "A17"}


def _submit(site: Site, followers: int) -> tuple[str, list[str]]:
    """A first call, and those that follow it."""
    site.publish(tools)
    site.ledger.open_gate("A17")
    first = site.submit("bill", **ORDER)
    return first, site.submit_all([("bill", ORDER)] * followers)


def _resolve(site: Site, call: str) -> None:
    record = site.record(call)
    seen = Expected(call, record.state, record.fence)
    assert site.connection.run(resolve(site.connection.space, seen, '"found"', Actor("ann"))).verdict == "resolved"


def _check(site: Site, followers: list[str], state: State, effects: int) -> None:
    assert Counter(site.state(key) for key in followers) == {state: len(followers)}
    assert site.ledger.count("billed") == effects
    assert site.stats().balanced
    for key in followers:
        ends = [line for line in site.record(key).history if line["op"] == "follow"]
        assert len(ends) == (1 if state.is_settled else 0)


@pytest.mark.parametrize("point", ["after_effect", "before_settle"])
def test_a_worker_killed_before_it_could_tell_leaves_all_in_doubt_until_a_person_says(site: Site, point: str) -> None:
    first, followers = _submit(site, 5)
    with site.worker(tools=TOOLS, crash=point) as worker:
        assert worker.wait() == -9
    with site.worker(tools=TOOLS):
        site.wait_for(first, State.UNKNOWN)
        _check(site, followers, State.HELD, 1)
        assert all(site.record(key).fields.first_unknown for key in followers)
        late = site.submit("bill", **ORDER)
        assert site.record(late).fields.first_unknown
        _resolve(site, first)
        _check(site, [*followers, late], State.SUCCEEDED, 1)


def test_a_worker_killed_behind_its_settle_has_told_all(site: Site) -> None:
    first, followers = _submit(site, 5)
    with site.worker(tools=TOOLS, crash="after_settle") as worker:
        assert worker.wait() == -9
    assert site.state(first) is State.SUCCEEDED
    _check(site, followers, State.SUCCEEDED, 1)


def test_a_follower_that_took_the_key_is_one_of_its_own_when_its_worker_is_killed(site: Site) -> None:
    plan(site.ledger, "A17", "no_effect", "succeed")
    first, followers = _submit(site, 5)
    with site.worker(tools=TOOLS, crash="before_settle@2") as worker:
        assert worker.wait() == -9
    assert site.state(first) is State.FAILED
    [second] = [key for key in followers if not site.record(key).fields.follows]
    rest = [key for key in followers if key != second]
    with site.worker(tools=TOOLS):
        site.wait_for(second, State.UNKNOWN)
        assert {site.record(key).fields.follows for key in rest} == {second}
        _check(site, rest, State.HELD, 1)
        _resolve(site, second)
        _check(site, rest, State.SUCCEEDED, 1)


@pytest.mark.parametrize("words", [("succeed",), ("fail",), ("no_effect",)])
@pytest.mark.parametrize("hit", [4, 9])
def test_a_worker_killed_in_the_sweep_that_tells_many_leaves_the_rest_to_the_next(
    site: Site, hit: int, words: tuple[str, ...]
) -> None:
    """The kill may also meet the call that has the key, in its handler: then a person says what became of it."""
    plan(site.ledger, "A17", *words)
    first, followers = _submit(site, 150)
    with site.worker(tools=TOOLS, crash=f"in_recovery@{hit}") as worker:
        assert worker.wait() == -9

    def told() -> bool:
        counts = site.stats().counts
        for key in [first, *followers] if counts["state:unknown"] else []:
            if site.state(key) is State.UNKNOWN:
                _resolve(site, key)
        return counts["state:succeeded"] + counts["state:failed"] == len(followers) + 1

    with site.worker(tools=TOOLS):
        wait_until(told, 60, "all have their answer")
    assert site.ledger.count("billed") <= 1
    assert site.stats().balanced
