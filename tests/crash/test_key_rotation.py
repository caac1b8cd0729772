"""Keys are rotated under open and settled calls: nothing looks like a conflict, and no stored key changes."""

from __future__ import annotations

import pytest

from tests.support.crash.secrets import MARKER, tools
from tests.support.processes.workers import Site
from toolonce.store.model import keyring
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.outcomes import Outcome
from toolonce.store.model.states import State
from toolonce.store.operations import queries
from toolonce.stream.harness.client import Client
from toolonce.stream.turns.turn import ToolCall
from toolonce.worker import Call, Registry

OLD, NEW = "the older key of the tests", "the newer key of the tests"


def _submit(site: Site, keys: str, note: str = "mine", *, turn_id: str = "turn-1") -> Outcome:
    """As a harness of its own with these keys."""
    call = ToolCall("sign_in", {"api_key": MARKER, "note": note}, "call_0", "function", 0)
    with Client(site.url, scope="tenant-1/talk-1", namespace=site.namespace, keyring=Keyring.parse(keys)) as client:
        return client.submit_calls([call], turn_id=turn_id).outcomes[0]


def _served(keys: list[str]) -> Registry:
    """A tool with a secret that notes the idempotency keys it is given."""
    registry = Registry()

    @registry.tool(effect="mutating", secret="api_key", version="1")
    def sign_in(api_key: str, note: str, *, call: Call) -> str:
        keys.append(call.idempotency_key)
        return note if api_key == MARKER else "another key"

    return registry


def _submit_to_stay_held(
    site: Site, registry: Registry, monkeypatch: pytest.MonkeyPatch, *, sealed: str, known: str
) -> str:
    """A call sealed with some keys, given back by a worker that knows only others; its key."""
    key = _submit(site, sealed).key
    monkeypatch.setenv(keyring.VARIABLE, known)
    with site.worker_here(registry):
        held = site.wait_for(key, State.HELD)
    assert held.fields.reason == "no_worker"
    return key


def test_a_rotation_causes_no_conflict_and_changes_no_stored_key(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    forwarded: list[str] = []
    registry = _served(forwarded)
    site.publish(registry)
    before = _submit(site, OLD)
    stored = site.record(before.key)

    monkeypatch.setenv(keyring.VARIABLE, f"{NEW},{OLD}")
    with site.worker_here(registry):
        site.wait_for(before.key, State.SUCCEEDED)
        rotated = _submit(site, f"{NEW},{OLD}")
        reversed_ = _submit(site, f"{OLD},{NEW}")

    assert (rotated.key, reversed_.key) == (before.key, before.key)
    assert not rotated.conflict
    assert not reversed_.conflict
    assert rotated.value == reversed_.value == "mine"
    after = site.record(before.key)
    assert (after.fields.fp, after.fields.kid) == (stored.fields.fp, stored.fields.kid)
    assert forwarded == [stored.idempotency_key] == [after.idempotency_key]


def test_processes_that_know_both_keys_in_either_order_read_what_the_others_sealed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The middle of a rotation: ``old,new`` still seals with the old key, and reads the new one."""
    first, second = f"{OLD},{NEW}", f"{NEW},{OLD}"
    forwarded: list[str] = []
    registry = _served(forwarded)
    site.publish(registry)
    keys = {order: _submit(site, order, turn_id=order[:9]).key for order in (first, second)}

    monkeypatch.setenv(keyring.VARIABLE, first)
    with site.worker_here(registry):
        for key in keys.values():
            site.wait_for(key, State.SUCCEEDED)

    sealed_with = [site.record(key).fields.kid for key in keys.values()]
    assert sealed_with == [Keyring.parse(OLD).newest_id, Keyring.parse(NEW).newest_id]
    again = [_submit(site, order, turn_id=turn[:9]) for order in keys for turn in keys]
    assert not any(outcome.conflict for outcome in again)
    assert len(forwarded) == 2


def test_a_process_that_knows_only_the_old_key_can_do_nothing_with_what_the_new_one_sealed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why a rotation begins with ``old,new`` everywhere."""
    forwarded: list[str] = []
    registry = _served(forwarded)
    site.publish(registry)
    _submit_to_stay_held(site, registry, monkeypatch, sealed=f"{NEW},{OLD}", known=OLD)

    assert _submit(site, OLD).conflict
    assert not forwarded


def test_other_arguments_are_a_conflict_under_old_and_new_keys(site: Site) -> None:
    site.publish(tools)
    _submit(site, OLD)

    assert _submit(site, OLD, note="another").conflict
    assert _submit(site, f"{NEW},{OLD}", note="another").conflict


def test_a_call_goes_to_the_one_of_two_workers_that_can_open_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one gives it back, and it does not wait for a new worker then."""
    forwarded: list[str] = []
    registry = _served(forwarded)
    site.publish(registry)
    monkeypatch.setenv(keyring.VARIABLE, f"{NEW},{OLD}")
    with site.worker_here(registry, concurrency=1):
        monkeypatch.setenv(keyring.VARIABLE, NEW)
        with site.worker_here(registry, concurrency=1):
            calls = [_submit(site, OLD, turn_id=f"turn-{n}").key for n in range(20)]
            for call in calls:
                site.wait_for(call, State.SUCCEEDED, timeout=60)

    assert len(forwarded) == len(calls)


def test_a_call_sealed_with_a_key_that_is_gone_waits_for_a_worker_that_has_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not failed and not run with anything else: the key may come back."""
    forwarded: list[str] = []
    registry = _served(forwarded)
    site.publish(registry)
    key = _submit_to_stay_held(site, registry, monkeypatch, sealed=OLD, known=NEW)
    assert not forwarded

    monkeypatch.setenv(keyring.VARIABLE, f"{NEW},{OLD}")
    with site.worker_here(registry):
        site.wait_for(key, State.SUCCEEDED)
    assert len(forwarded) == 1
    assert site.connection.run(queries.stats(site.connection.space)).balanced
