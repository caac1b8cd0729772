"""What is looked at between a claim and the entry into a handler: versions, arguments, permission, a person's word."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations.operators import Actor, approve, deny
from toolonce.store.operations.tools import publish
from toolonce.worker import Allow, Ask, Call, Deny, Registry


def _registry(**options: Any) -> tuple[Registry, list[str]]:
    """A registry with one tool, `pay`, and its effects."""
    registry, effects = Registry(), []

    @registry.tool(**options)
    def pay(to: str, amount: int) -> str:
        effects.append(f"{to} {amount}")
        return to

    return registry, effects


def test_a_call_denied_by_the_hook_has_no_effect_and_a_stored_reason(site: Site) -> None:
    registry, effects = _registry()
    registry.authorize(lambda call, arguments: Deny("over the limit") if arguments["amount"] > 10 else Allow())

    with site.worker_here(registry):
        refused, allowed = site.submit_all(
            [("pay", {"to": "acct-1", "amount": 11}), ("pay", {"to": "acct-2", "amount": 10})]
        )
        record = site.wait_for(refused, State.REFUSED)
        site.wait_for(allowed, State.SUCCEEDED)

    assert record.failure
    assert (record.failure.code, record.failure.message) == ("denied", "not run: over the limit")
    assert effects == ["acct-2 10"]


def test_a_hook_that_fails_permits_nothing(site: Site) -> None:
    registry, effects = _registry()

    def broken(call: Call, arguments: dict[str, Any]) -> bool:
        raise RuntimeError("the rules are gone")

    registry.authorize(broken)
    with site.worker_here(registry):
        key = site.submit("pay", to="acct-1", amount=1)
        site.wait_for(key, State.REFUSED)

    assert effects == []


def test_a_call_that_the_hook_asks_about_waits_for_a_person_and_runs_once(site: Site) -> None:
    registry, effects = _registry()
    registry.authorize(lambda call, arguments: Ask("large sum"))

    with site.worker_here(registry):
        key = site.submit("pay", to="acct-1", amount=5)
        held = site.wait_for(key, State.HELD)
        word = Actor("ann")
        first = site.connection.run(approve(site.connection.space, key, held.idempotency_key, word))
        record = site.wait_for(key, State.SUCCEEDED)
        second = site.connection.run(approve(site.connection.space, key, held.idempotency_key, Actor("bob")))

    assert held.fields.reason == "approval"
    assert (first.verdict, second.verdict) == ("approved", "decided")
    assert record.fields.attempt == 1
    assert effects == ["acct-1 5"]


def test_a_call_that_the_hook_asks_about_can_be_denied(site: Site) -> None:
    registry, effects = _registry()
    registry.authorize(lambda call, arguments: Ask())

    with site.worker_here(registry):
        key = site.submit("pay", to="acct-1", amount=5)
        ikey = site.wait_for(key, State.HELD).idempotency_key
        site.connection.run(deny(site.connection.space, key, ikey, Actor("ann", "not now")))
        record = site.wait_for(key, State.REFUSED)

    assert record.failure
    assert record.failure.details["reason"] == "not now"
    assert effects == []


def test_an_approval_that_nobody_gives_expires_and_a_late_click_runs_nothing(site: Site) -> None:
    """O7-08."""
    registry, effects = _registry(approval="always", approval_lifetime=0.3)

    with site.worker_here(registry):
        key = site.submit("pay", to="acct-1", amount=5)
        ikey = site.record(key).idempotency_key
        record = site.wait_for(key, State.EXPIRED)
        late = site.connection.run(approve(site.connection.space, key, ikey, Actor("ann")))

    assert record.failure
    assert "nobody approved" in record.failure.message
    assert late.verdict == "late"
    assert effects == []


def test_a_call_of_another_version_waits_for_a_worker_that_takes_it(site: Site) -> None:
    """Two worker versions side by side: neither fails the other's calls, nor spins on them."""
    old, old_effects = _registry(version="1")
    new = Registry()

    @new.tool(name="pay", version="2")
    def pay(to: str, amount: int, currency: str) -> str:
        return currency

    site.publish(old)
    key = site.submit("pay", to="acct-1", amount=5)
    with site.worker_here(new):
        held = site.wait_for(key, State.HELD)
        with site.worker_here(old):
            record = site.wait_for(key, State.SUCCEEDED)

    assert held.fields.reason == "no_worker"
    assert record.fields.attempt == 1
    assert old_effects == ["acct-1 5"]


def test_a_call_whose_tool_no_worker_has_waits_until_one_comes(site: Site) -> None:
    other = Registry()

    @other.tool
    def something_else() -> None: ...

    registry, effects = _registry()
    site.publish(registry)
    key = site.submit("pay", to="acct-1", amount=5)
    with site.worker_here(other):
        held = site.wait_for(key, State.HELD)
    with site.worker_here(registry):
        site.wait_for(key, State.SUCCEEDED)

    assert held.fields.reason == "no_worker"
    assert effects == ["acct-1 5"]


def test_arguments_are_checked_again_before_execution(site: Site) -> None:
    """Admission saw a looser schema than the worker that runs the call has."""
    registry, effects = _registry()
    spec = registry.specs()[0]
    site.connection.run(publish(site.connection.space, [replace(spec, schema={"type": "object"})]))
    key = site.submit("pay", to="acct-1", amount="5")

    with site.worker_here(registry):
        record = site.wait_for(key, State.REFUSED)

    assert record.failure
    assert record.failure.code == "invalid_arguments"
    assert "$.amount" in record.failure.message
    assert effects == []


def test_a_record_whose_arguments_cannot_be_read_is_refused_and_the_worker_lives_on(site: Site) -> None:
    registry, effects = _registry()
    site.publish(registry)
    broken = site.submit("pay", to="acct-1", amount=5)
    site.connection.command("HSET", f"{site.connection.space.root}call:{broken}", "args", '{"to": ')

    with site.worker_here(registry):
        record = site.wait_for(broken, State.REFUSED)
        site.wait_for(site.submit("pay", to="acct-2", amount=6), State.SUCCEEDED)

    assert record.failure
    assert record.failure.code == "unreadable_arguments"
    assert effects == ["acct-2 6"]


def test_a_custom_tool_gets_its_text(site: Site) -> None:
    from toolonce.stream.turns.turn import ToolCall

    registry, seen = Registry(), []

    @registry.tool
    def run_script(input: str) -> int:  # noqa: A002  the name that a custom tool's text has
        seen.append(input)
        return len(input)

    site.publish(registry)
    with site.worker_here(registry):
        batch = site.client.submit_calls([ToolCall("run_script", "a = 1\n", "c", "custom", 0)], turn_id="custom")
        site.wait_for(batch.outcomes[0].key, State.SUCCEEDED)

    assert seen == ["a = 1\n"]


def test_queues_are_served_as_asked_for(site: Site) -> None:
    registry, seen = Registry(), []

    @registry.tool(queue="billing")
    def bill() -> None:
        seen.append("bill")

    @registry.tool(queue="mail")
    def send() -> None:
        seen.append("send")

    site.publish(registry)
    mail = site.submit("send")
    bill_key = site.submit("bill")
    with site.worker_here(registry, queues=("billing",)):
        site.wait_for(bill_key, State.SUCCEEDED)
        assert site.state(mail) is State.QUEUED
    with site.worker_here(registry):
        site.wait_for(mail, State.SUCCEEDED)

    assert seen == ["bill", "send"]


def test_one_slot_serves_many_queues(site: Site) -> None:
    registry = Registry()
    for name in ("a", "b", "c", "d", "e"):
        registry.tool(name=name, queue=f"queue-{name}")(lambda: None)

    with site.worker_here(registry, concurrency=1):
        keys = [site.submit(name) for name in ("a", "b", "c", "d", "e") for _ in range(3)]
        for key in keys:
            site.wait_for(key, State.SUCCEEDED)


def test_a_context_tells_the_handler_who_asks(site: Site) -> None:
    registry = Registry()
    told: dict[str, Any] = {}

    @registry.tool(timeout=7)
    def who(call: Call) -> None:
        told.update(scope=call.scope, turn=call.turn_id, attempt=call.attempt, key=call.idempotency_key)
        told["remaining"] = call.remaining
        call.logger.info("here")

    with site.worker_here(registry):
        key = site.submit("who", turn_id="step-9")
        record = site.wait_for(key, State.SUCCEEDED)

    assert told["scope"] == "tenant-1/talk-1"
    assert told["turn"] == "step-9"
    assert told["key"] == record.idempotency_key
    assert 0 < told["remaining"] <= 7


def test_a_handler_that_waits_for_another_call_is_refused(site: Site) -> None:
    """O6-05: with every slot taken by such handlers nothing would move any more."""
    registry = Registry()

    @registry.tool(effect="read", retry=1)
    def outer() -> Any:
        from toolonce.stream.turns.turn import ToolCall

        return site.client.submit_calls([ToolCall("inner", {}, "i", "function", 0)], turn_id="inner").wait(timeout=5)

    @registry.tool(effect="read")
    def inner() -> str:
        return "inner"

    with site.worker_here(registry, concurrency=1):
        record = site.wait_for(site.submit("outer"), State.FAILED)
        wait_until(site.at_rest, description="the inner call runs by itself")

    assert record.failure
    assert "waits for another call" in json.dumps(record.failure.message)
    assert site.outcome("inner").value == "inner"
