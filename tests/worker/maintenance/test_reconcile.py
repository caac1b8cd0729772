"""Reconciles: an unknown call is settled by looking whether its effect is there."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.worker import Call, DidNotHappen, Registry


class Bank:
    """A downstream that keeps what it did by idempotency key."""

    def __init__(self, *, pays: bool = True, **options: Any) -> None:
        self.booked: dict[str, int] = {}
        self.asked = 0
        self.fails = 0
        self.registry = Registry()

        @self.registry.tool(**options)
        def pay(amount: int, *, call: Call) -> str:
            if pays or call.attempt > 1:
                self.booked[call.idempotency_key] = amount
            if call.attempt == 1:
                raise ConnectionResetError("the line broke")
            return "paid"

        @pay.reconcile
        def find(amount: int, *, call: Call) -> str:
            self.asked += 1
            if self.asked <= self.fails:
                raise TimeoutError("the bank is closed")
            if call.idempotency_key not in self.booked:
                raise DidNotHappen("no such booking")
            return f"found {self.booked[call.idempotency_key]}"


def test_what_happened_is_settled_with_what_was_found(site: Site) -> None:
    bank = Bank()
    with site.worker_here(bank.registry):
        key = site.submit("pay", amount=5)
        record = site.wait_for(key, State.SUCCEEDED)

    assert record.fields.result == '"found 5"'
    assert [event["op"] for event in record.history] == ["admit", "claim", "settle", "reconcile"]
    assert len(bank.booked) == 1


def test_what_did_not_happen_has_failed(site: Site) -> None:
    bank = Bank(pays=False)
    with site.worker_here(bank.registry):
        record = site.wait_for(site.submit("pay", amount=5), State.FAILED)

    assert record.failure
    assert record.failure.code == "did_not_happen"
    assert "no such booking" in record.failure.message


def test_what_did_not_happen_is_run_again_only_where_the_tool_says_so(site: Site) -> None:
    bank = Bank(pays=False, rerun_absent=True)
    with site.worker_here(bank.registry):
        record = site.wait_for(site.submit("pay", amount=5), State.SUCCEEDED)

    assert record.fields.attempt == 2
    assert len(bank.booked) == 1


def test_a_reconcile_that_cannot_tell_is_asked_again_later(site: Site) -> None:
    bank = Bank()
    bank.fails = 1
    with site.worker_here(bank.registry):
        key = site.submit("pay", amount=5)
        wait_until(lambda: bank.asked == 1, description="it was asked once")
        assert site.wait_for(key, State.UNKNOWN)
        record = site.wait_for(key, State.SUCCEEDED)

    assert bank.asked == 2
    assert "TimeoutError: the bank is closed" in [event.get("reason") for event in record.history]


def test_an_async_reconcile_is_asked_too(site: Site) -> None:
    registry = Registry()

    @registry.tool
    async def pay(amount: int) -> None:
        raise ConnectionResetError

    @pay.reconcile
    async def find(amount: int) -> int:
        return amount

    with site.worker_here(registry):
        assert site.wait_for(site.submit("pay", amount=7), State.SUCCEEDED).fields.result == "7"


@pytest.mark.parametrize("isolation", ["thread", "async"])
def test_nobody_asks_what_a_handler_did_that_is_still_at_work(site: Site, isolation: str) -> None:
    """G1: it has overrun its limit and will have its effect soon; "not there" would be true, and run it again."""
    effects, asked, tools, may_end = [], [], Registry(), threading.Event()

    def act(amount: int) -> str:
        may_end.wait(60)
        effects.append(amount)
        return "paid"

    async def act_async(amount: int) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.to_thread(may_end.wait, 60)
        effects.append(amount)
        return "paid"

    pay = tools.tool(name="pay", timeout=1, rerun_absent=True)(act if isolation == "thread" else act_async)

    @pay.reconcile
    def find(amount: int) -> str:
        asked.append(amount)
        if not effects:
            raise DidNotHappen("not there")
        return "found"

    with site.worker_here(tools, lease_ms=2_000):
        key = site.submit("pay", amount=5)
        site.wait_for(key, State.UNKNOWN)
        sent = site.connection.command("TIME")[0]
        wait_until(lambda: int(site.connection.command("TIME")[0]) >= int(sent) + 4, description="rounds of reconciles")
        assert (site.state(key), asked) == (State.UNKNOWN, [])
        may_end.set()
        site.wait_for(key, State.SUCCEEDED)

    assert effects == [5]


def test_once_a_handler_has_ended_without_a_word_its_tool_is_asked(site: Site) -> None:
    tools, may_end = Registry(), threading.Event()

    @tools.tool(name="pay", timeout=0.2)
    def pay(amount: int) -> str:
        may_end.wait(60)
        raise ConnectionResetError("no word of what happened")

    @pay.reconcile
    def find(amount: int) -> str:
        return "found"

    with site.worker_here(tools, lease_ms=600):
        key = site.submit("pay", amount=5)
        site.wait_for(key, State.UNKNOWN)
        may_end.set()
        record = site.wait_for(key, State.SUCCEEDED)

    assert record.fields.result == '"found"'
