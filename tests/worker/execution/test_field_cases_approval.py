"""Faults that others met with approvals (group 7), one test for the class of each. Cancels: test_stopping."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations.operators import Actor, Decision, Expected, approve, retry
from toolonce.worker import Ask, Registry


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


def _approve(site: Site, key: str, ikey: str, actor: str = "ann") -> Decision:
    return site.connection.run(approve(site.connection.space, key, ikey, Actor(actor)))


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
            ikey = site.record(key).idempotency_key
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
    ikey_of_other = site.record(other).idempotency_key

    done = _approve(site, shown, ikey_of_other)
    with site.worker_here(till.registry):
        site.wait_for(other, State.HELD)

    assert done.verdict == "mismatch"
    assert site.state(shown) is State.HELD
    assert till.paid == []


def test_an_approval_releases_one_call_of_one_scope_once(site: Site, till: Till) -> None:
    """O7-05: two conversations wait on the same provider id, and later it comes again."""
    from toolonce.stream.harness.client import Client
    from toolonce.stream.turns.turn import ToolCall

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
        ikey = site.record(key).idempotency_key
        _approve(site, key, ikey)
        site.wait_for(key, State.SUCCEEDED)
        again = _approve(site, key, ikey, "ann")

    assert (again.verdict, again.detail, again.more) == ("decided", "succeeded", "ann")
    assert till.paid == ["acct-1 5"]


@pytest.mark.parametrize("asks", ["hook", "always"])
def test_a_retried_call_is_asked_about_anew_before_it_runs_again(site: Site, tmp_path: Path, asks: Any) -> None:
    """Faults 3: the effect is counted in a file."""
    registry, ledger = Registry(), tmp_path / "effects"
    ledger.touch()

    @registry.tool(approval=asks)
    def wire(cents: int) -> None:
        with ledger.open("a", encoding="utf-8") as file:
            file.write("wired\n")
        raise ConnectionResetError("no answer")

    if asks == "hook":
        registry.authorize(lambda call, arguments: Ask("may it?"))
    with site.worker_here(registry):
        key = site.submit("wire", cents=5)
        for runs in (0, 1):
            outcome = site.client.batch(site.wait_for(key, State.HELD).fields.turn).outcomes[0]
            assert len(ledger.read_text().splitlines()) == runs
            assert site.client.approve(outcome, actor="ann").verdict == "approved"
            record = site.wait_for(key, State.UNKNOWN)
            assert len(ledger.read_text().splitlines()) == runs + 1
            if runs == 0:
                seen = Expected(key, record.state, record.fence)
                site.connection.run(retry(site.connection.space, seen, Actor("ann", "try it once more")))


def test_an_equal_call_that_the_hook_asks_about_needs_two_answers(site: Site, tmp_path: Path) -> None:
    """Faults 3."""
    registry, ledger = Registry(), tmp_path / "effects"
    ledger.touch()

    @registry.tool(hold_duplicates=True)
    def wire(cents: int) -> None:
        with ledger.open("a", encoding="utf-8") as file:
            file.write("wired\n")

    registry.authorize(lambda call, arguments: Ask("may it?"))
    with site.worker_here(registry):
        first = site.submit("wire", cents=5)
        site.wait_for(first, State.HELD)
        [second] = site.submit_outcomes([("wire", {"cents": 5})])
        assert second.marks["reason"] == "duplicate"
        assert site.client.approve(second, actor="ann").verdict == "approved"
        wait_until(lambda: site.record(second.key).fields.reason == "approval", description="the hook asks")
        assert site.client.approve(second, actor="ann").verdict == "changed", "a second click is no second answer"
        assert ledger.read_text() == ""
        [shown] = site.client.batch(second.turn_id).outcomes
        assert site.client.approve(shown, actor="ann").verdict == "approved"
        site.wait_for(second.key, State.SUCCEEDED)

    assert ledger.read_text() == "wired\n"
    assert site.state(first) is State.HELD
