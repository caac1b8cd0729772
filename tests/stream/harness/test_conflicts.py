"""A conflict is an answer with a state of its own, and tells what became of the first call: at every interface alike
(faults 28, 29)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.stream.harness import Bench, call
from tests.support.stream.inbox import Inbox
from toolonce.ops.views import outcome_view
from toolonce.store.model.outcomes import Failure
from toolonce.store.model.states import NotStored, State
from toolonce.stream.inbox.consumer import Consumer

CODES = {State.FAILED: "tool_error", State.CANCELLED: "cancelled", State.REFUSED: "denied"}


def _queued(bench: Bench, key: str) -> None: ...
def _running(bench: Bench, key: str) -> None:
    bench.scene.take()


def _succeeded(bench: Bench, key: str) -> None:
    bench.run_next("paid")


def _failed(bench: Bench, key: str) -> None:
    bench.scene.settle(bench.scene.take(), state=State.FAILED)


def _unknown(bench: Bench, key: str) -> None:
    bench.scene.settle(bench.scene.take(), state=State.UNKNOWN)


def _cancelled(bench: Bench, key: str) -> None:
    bench.scene.cancel(key)


def _held(bench: Bench, key: str) -> None:
    bench.scene.release(bench.scene.take(), held="approval")


FIRST: dict[State, Callable[[Bench, str], None]] = {
    State.QUEUED: _queued, State.RUNNING: _running, State.SUCCEEDED: _succeeded, State.FAILED: _failed,
    State.UNKNOWN: _unknown, State.CANCELLED: _cancelled, State.HELD: _held,
}  # fmt: skip


@pytest.mark.parametrize("named_by", ["turn", "intent"])
@pytest.mark.parametrize("state", FIRST)
def test_a_conflict_has_a_state_of_its_own_and_tells_of_the_first_call_at_every_interface(
    bench: Bench, state: State, named_by: str
) -> None:
    """Faults 28, 29."""
    intent = "invoice-17" if named_by == "intent" else None
    client = bench.another_client("acme/talk")
    [first] = client.submit_calls([call(n=1)], turn_id="t", intent=intent).outcomes
    FIRST[state](bench, first.key)

    batch = client.submit_calls([call(n=2)], turn_id="t", intent=intent)
    [outcome] = batch.outcomes
    box, consumer = Inbox(bench), Consumer(bench.store.connection, name="one")
    fields: dict[str, Any] = {"intent": {"0": intent}} if intent else {}
    entry = box.add(scope="talk", turn="t", calls=[{"name": "pay", "id": "a", "arguments": {"n": 2}}], **fields)
    consumer.step(0.01)
    _, answer = box.answers(entry)

    assert (outcome.state, outcome.conflict, outcome.settled) == (NotStored.CONFLICT, True, True)
    assert (outcome.value, outcome.attempt, outcome.fence, outcome.marks) == (None, 0, 0, {})
    assert outcome.failure
    told = outcome.failure.details["first"]
    assert (told["tool"], told["state"], outcome.failure.details["named_by"]) == ("pay", state, named_by)
    assert told.get("error", {}).get("code") == ("tool_error" if state is State.UNKNOWN else CODES.get(state))
    assert outcome_view.as_json(outcome)["state"] == answer["state"] == "conflict"
    inbox_failure = json.loads(answer["error"])
    assert Failure(inbox_failure["code"], inbox_failure["message"], inbox_failure["details"]) == outcome.failure
    assert ("intent key was used before" in outcome.failure.message) == (named_by == "intent")
    assert outcome.failure.message.endswith(f"The first call is {state}")
    assert "[conflict]" in json.dumps(batch.replies("anthropic"))
    assert batch.refresh()[0] == outcome


def test_to_approve_a_conflict_approves_nothing_of_the_first_call(bench: Bench) -> None:
    """Faults 29: whoever saw the conflict has not seen the first one's arguments."""
    [first] = bench.client.submit_calls([call(n=1)], turn_id="t").outcomes
    _held(bench, first.key)
    [conflict] = bench.client.submit_calls([call(n=2)], turn_id="t").outcomes

    assert bench.client.approve(conflict, actor="ann").verdict == "mismatch"
    assert bench.scene.state(first.key) is State.HELD
