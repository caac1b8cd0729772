"""Cancel: before the start, and while a handler is at work."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from tests.support.processes.tools_under_test import effect, thread_tools
from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations.operators import Actor, Decision, Expected, cancel
from toolonce.worker import Call, Registry


def _cancel(site: Site, key: str) -> Decision:
    return site.connection.run(cancel(site.connection.space, Expected(key), Actor("ann", "changed my mind")))


def test_a_call_cancelled_before_its_start_has_no_effect(site: Site) -> None:
    """O7-01."""
    site.publish(thread_tools)
    key = site.submit("put", what="x")
    done = _cancel(site, key)

    with site.worker_here(thread_tools):
        site.wait_for(site.submit("put", what="y"), State.SUCCEEDED)

    assert done.verdict == "cancelled"
    assert site.state(key) is State.CANCELLED
    assert site.ledger.count("put x") == 0


def test_a_running_call_that_ignores_a_stop_is_never_called_not_executed(site: Site) -> None:
    """O7-02."""
    with site.worker_here(thread_tools):
        key = site.submit("put_and_wait", what="x", turn_id="stubborn")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        done = _cancel(site, key)
        pending = site.outcome("stubborn")
        site.ledger.open_gate("x")
        site.wait_for(key, State.SUCCEEDED)

    assert done.verdict == "requested"
    assert (pending.state, pending.marks["cancel_requested"]) == (State.RUNNING, True)
    assert site.outcome("stubborn").value == "x"


def test_a_mutating_handler_that_stops_on_request_leaves_its_call_unknown(site: Site) -> None:
    with site.worker_here(thread_tools):
        key = site.submit("until_stopped", what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        _cancel(site, key)
        record = site.wait_for(key, State.UNKNOWN)

    assert record.failure
    assert "stopped on request" in record.failure.message


def test_a_stop_that_is_heard_before_begin_means_no_effect(site: Site) -> None:
    registry, effects = Registry(), []

    @registry.tool(begins=True)
    def careful(call: Call) -> None:
        from tests.support.processes.tools_under_test import pass_gate

        effect("inside")
        pass_gate("go")
        call.begin()
        effects.append("happened")

    with site.worker_here(registry):
        key = site.submit("careful")
        wait_until(lambda: site.ledger.count("inside"), description="it is inside")
        _cancel(site, key)
        site.ledger.open_gate("go")
        record = site.wait_for(key, State.FAILED)

    assert record.failure
    assert record.failure.code == "cancelled"
    assert effects == []


def test_a_call_that_is_to_be_tried_again_and_was_cancelled_is_not(site: Site) -> None:
    registry, attempts = Registry(), []

    @registry.tool(effect="read")
    def flaky(call: Call) -> None:
        from tests.support.processes.tools_under_test import pass_gate

        attempts.append(call.attempt)
        effect("inside")
        pass_gate("go")
        wait_until(lambda: call.channel.standing() == "cancel", description="the stop is heard")
        raise RuntimeError("again, please")

    with site.worker_here(registry, lease_ms=2_000):
        key = site.submit("flaky")
        wait_until(lambda: site.ledger.count("inside"), description="it is inside")
        _cancel(site, key)
        site.ledger.open_gate("go")
        record = site.wait_for(key, State.FAILED)

    assert record.failure
    assert record.failure.code == "cancelled"
    assert attempts == [1]


@pytest.mark.parametrize("tool", ["until_stopped", "process_until_stopped", "async_until_stopped"])
def test_a_stop_reaches_a_running_handler_however_long_its_lease(site: Site, tool: str) -> None:
    """faults 8, DESIGN 6: `call.check_lease()` hears it within two seconds, a task on the event loop is cancelled."""
    with site.worker(lease_ms=3_600_000):
        key = site.submit(tool, what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        _cancel(site, key)
        record = site.wait_for(key, State.UNKNOWN)

    assert record.failure
    assert "stopped on request" in record.failure.message
    assert site.ledger.lines("stopped") == [
        "stopped x CancelledError" if tool == "async_until_stopped" else "stopped x CancelRequested"
    ]


def test_a_stop_is_announced_to_the_worker_at_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """faults 8: an async handler need not wait for the next renewal, which here would not come."""
    monkeypatch.setattr("toolonce.worker.execution.lease.HEARD_S", 3_600)
    with site.worker_here(thread_tools, lease_ms=3_600_000):
        key = site.submit("async_until_stopped", what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        _cancel(site, key)
        site.wait_for(key, State.UNKNOWN)

    assert site.ledger.count("stopped x CancelledError") == 1


def test_an_async_handler_that_is_stopped_before_begin_has_had_no_effect(site: Site) -> None:
    """faults 8."""
    registry, effects = Registry(), []

    @registry.tool(begins=True)
    async def careful(call: Call) -> None:
        effect("inside")
        await asyncio.sleep(60)
        await call.begin_async()
        effects.append("happened")

    with site.worker_here(registry):
        key = site.submit("careful")
        wait_until(lambda: site.ledger.count("inside"), description="it is inside")
        _cancel(site, key)
        record = site.wait_for(key, State.FAILED)

    assert record.failure
    assert record.failure.code == "cancelled"
    assert effects == []


def test_a_task_that_swallows_its_cancellation_still_counts_what_it_returns(site: Site) -> None:
    registry = Registry()

    @registry.tool
    async def stubborn() -> str:
        effect("inside")
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return "done all the same"

    with site.worker_here(registry):
        key = site.submit("stubborn")
        wait_until(lambda: site.ledger.count("inside"), description="it is inside")
        _cancel(site, key)
        record = site.wait_for(key, State.SUCCEEDED)

    assert record.fields.result == '"done all the same"'
