"""Faults that others met with approvals (group 7), one test for the class of each. Cancels: test_stopping."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.workers import Site
from toolonce.store.operators import Done, Word, approve
from toolonce.store.states import State
from toolonce.worker import Registry


class Till:
    """A tool that always needs a person's word, and what it has paid."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.paid: list[str] = []

        @self.registry.tool(approval="always")
        def pay(to: str, amount: int) -> str:
            self.paid.append(f"{to} {amount}")
            return to


@pytest.fixture
def till() -> Till:
    return Till()


def _approve(site: Site, key: str, ikey: str, actor: str = "ann") -> Done:
    return site.connection.run(approve(site.connection.space, key, ikey, Word(actor)))


def test_of_two_approvals_at_once_one_counts_and_the_effect_happens_once(site: Site, till: Till) -> None:
    """O7-03."""
    barrier = threading.Barrier(2)

    def click(key: str, ikey: str, actor: str) -> str:
        barrier.wait()
        return _approve(site, key, ikey, actor).verdict

    site.publish(till.registry)
    with site.worker_here(till.registry), ThreadPoolExecutor(2) as people:
        keys = [site.submit("pay", to=f"acct-{n}", amount=1) for n in range(25)]
        for key in keys:
            ikey = site.record(key).stored["ikey"]
            clicks = [people.submit(click, key, ikey, actor) for actor in ("ann", "bob")]
            assert sorted(done.result() for done in clicks) == ["approved", "decided"]
        for key in keys:
            site.wait_for(key, State.SUCCEEDED)

    assert sorted(till.paid) == sorted(f"acct-{n} 1" for n in range(25))


def test_an_approval_covers_the_arguments_that_were_shown_and_no_others(site: Site, till: Till) -> None:
    """O7-04."""
    site.publish(till.registry)
    shown = site.submit("pay", to="acct-1", amount=5)
    other = site.submit("pay", to="acct-2", amount=5)
    ikey_of_other = site.record(other).stored["ikey"]

    done = _approve(site, shown, ikey_of_other)
    with site.worker_here(till.registry):
        site.wait_for(other, State.HELD)

    assert done.verdict == "mismatch"
    assert site.state(shown) is State.HELD
    assert till.paid == []


def test_an_approval_releases_one_call_of_one_scope_once(site: Site, till: Till) -> None:
    """O7-05: two conversations wait on the same provider id, and later it comes again."""
    from toolonce.stream.client import Client
    from toolonce.stream.turn import ToolCall

    site.publish(till.registry)
    call = ToolCall("pay", {"to": "acct-1", "amount": 5}, "call_0", "function", 0)
    with Client(site.url, scope="tenant-2/talk-9", namespace=site.namespace) as neighbour:
        mine = site.client.submit_calls([call], turn_id="t").outcomes[0]
        theirs = neighbour.submit_calls([call], turn_id="t").outcomes[0]
    with site.worker_here(till.registry):
        _approve(site, mine.key, mine.idempotency_key)
        site.wait_for(mine.key, State.SUCCEEDED)
        later = site.client.submit_calls([call], turn_id="later").outcomes[0]

    assert site.state(theirs.key) is State.HELD
    assert later.state is State.HELD
    assert till.paid == ["acct-1 5"]


def test_an_approval_given_again_after_success_shows_the_outcome_and_runs_nothing(site: Site, till: Till) -> None:
    """O7-07."""
    with site.worker_here(till.registry):
        key = site.submit("pay", to="acct-1", amount=5)
        ikey = site.record(key).stored["ikey"]
        _approve(site, key, ikey)
        site.wait_for(key, State.SUCCEEDED)
        again = _approve(site, key, ikey, "ann")

    assert (again.verdict, again.detail, again.more) == ("decided", "succeeded", "ann")
    assert till.paid == ["acct-1 5"]
