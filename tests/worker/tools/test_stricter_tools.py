"""A deploy changes what a tool declares while calls of it are open: the stricter word counts."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.support.processes.workers import Site
from toolonce.store.model.states import State
from toolonce.store.operations.runs import Delivery, Run, claim, declare, interrupt
from toolonce.worker import Call, Registry


def admit_for(site: Site, **declared: Any) -> str:
    """A call of `pay`, admitted while the tool was declared like this."""
    earlier = Registry()

    @earlier.tool(name="pay", **declared)
    def pay(what: str, *, call: Call) -> str:
        call.begin()
        return what

    site.publish(earlier)
    return site.submit("pay", what="x")


@pytest.mark.parametrize(
    "declared", [{"effect": "mutating", "begins": True}, {"effect": "read"}, {"effect": "idempotent"}], ids=str
)
def test_a_tool_that_lost_its_begin_or_became_mutating_is_not_entered_twice(
    site: Site, declared: dict[str, Any]
) -> None:
    """G1: by the record an entry that never said begin, or only read, might be repeated."""
    key, entries, may_end = admit_for(site, **declared), [], threading.Event()
    now = Registry()

    @now.tool(name="pay", effect="mutating", timeout=0.2)
    def pay(what: str) -> str:
        entries.append(what)
        may_end.wait(60)
        return what

    with site.worker_here(now):
        site.wait_for(key, State.UNKNOWN)
        may_end.set()
        site.wait_for(key, State.SUCCEEDED)

    assert entries == ["x"]


def test_a_tool_that_became_mutating_and_says_begin_is_repeated_until_it_has_said_so(site: Site) -> None:
    key, entries = admit_for(site, effect="read"), []
    now = Registry()

    @now.tool(name="pay", effect="mutating", begins=True, retry=9)
    def pay(what: str, *, call: Call) -> str:
        entries.append(call.attempt)
        call.begin()
        raise RuntimeError("after begin")

    with site.worker_here(now):
        record = site.wait_for(key, State.UNKNOWN)

    assert (entries, record.fields.effect, record.fields.begins) == ([1], "mutating", True)


def test_a_handler_that_lost_its_lease_to_another_one_declares_nothing(site: Site) -> None:
    """The declaration is written under the fence, like all that a worker says."""
    key = admit_for(site, effect="read")
    space, job = site.connection.space, site.record(key).idempotency_key
    run = site.connection.run(claim(space, Delivery(job, "default", "t", "w"), lease_ms=60_000))
    assert isinstance(run, Run)
    assert site.connection.run(declare(space, run)) == "declared"
    site.connection.run(interrupt(space, run, reason="test"))
    assert site.connection.run(declare(space, run)) == "lost"
