"""A batch's results go back to the calls of the turn that was submitted, whichever turn's record answers them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.redis_server import RealServer
from tests.support.stream.provider_rules import refusal
from tests.support.stream.turns import Asked, request, turn
from toolonce.store.model.specs import Effect, ToolSpec
from toolonce.store.operations.tools import publish
from toolonce.stream.harness.client import Client
from toolonce.stream.harness.history import history, replies
from toolonce.stream.turns.turn import DIALECTS, Dialect

EACH = pytest.mark.parametrize("dialect", DIALECTS)


@pytest.fixture
def client(redis_server: RealServer, namespace: str) -> Iterator[Client]:
    with Client(redis_server.url, scope="tenant/1", namespace=namespace) as client:
        specs = [ToolSpec(name, effect=Effect.READ) for name in ("look", "peek")]
        client.run(publish(client.terms.space, specs))
        yield client


@EACH
def test_a_regenerated_turn_gets_its_own_ids_on_the_results_of_the_first_one(client: Client, dialect: Dialect) -> None:
    first = turn(dialect, [Asked("look", "old_1")], turn_id="turn_1")
    again = turn(dialect, [Asked("peek", "new_0"), Asked("look", "new_1")], turn_id="turn_2")
    (stored,) = client.submit(first, intent={0: "step-7"}).outcomes

    batch = client.submit(again, intent={1: "step-7"})
    assert batch.outcomes[1].key == stored.key
    for outcome in batch.outcomes:
        client.cancel(outcome.key)

    assert [outcome.state for outcome in batch.wait(timeout=30)] == ["cancelled", "cancelled"]
    assert refusal(dialect, request(dialect, [*batch.history(), *batch.replies()])) is None


@EACH
def test_a_conflict_is_answered_under_the_name_and_id_of_the_call_that_was_refused(
    client: Client, dialect: Dialect
) -> None:
    client.submit(turn(dialect, [Asked("look", "id_1")]))

    batch = client.submit(turn(dialect, [Asked("peek", "id_1")]))

    assert [outcome.conflict for outcome in batch.outcomes] == [True]
    assert refusal(dialect, request(dialect, [*batch.history(), *batch.replies()])) is None


@EACH
def test_a_turn_with_a_rejected_and_an_unknown_tool_is_answered_whole(client: Client, dialect: Dialect) -> None:
    asked = turn(
        dialect, [Asked("look", "id_1"), Asked("look", "id_2", rejected="invalid_json"), Asked("nope", "id_3")]
    )

    batch = client.submit(asked)

    assert [outcome.state for outcome in batch.outcomes] == ["queued", "refused", "refused"]
    assert refusal(dialect, request(dialect, [*batch.history(), *batch.replies()])) is None
    assert refusal(dialect, request(dialect, [*batch.history(), *client.batch("turn_1").replies(dialect)])) is None


@EACH
def test_a_turn_that_came_in_several_submissions_is_answered_whole_and_in_their_order(
    client: Client, dialect: Dialect
) -> None:
    """Faults 22: each submission counts its positions from 0."""
    whole = turn(dialect, [Asked("look", "id_1"), Asked("peek", "id_2"), Asked("look", "id_3")], turn_id="turn_1")
    batches = [client.submit_calls([call], turn_id="turn_1") for call in whole.calls[:2]]
    batches.append(client.submit_calls(whole.calls[2:], turn_id="turn_1"))

    stored = client.batch("turn_1")
    together = [outcome for batch in batches for outcome in batch.outcomes]

    assert [outcome.call_id for outcome in stored.outcomes] == [call.call_id for call in whole.calls]
    assert [outcome.position for outcome in stored.refresh()] == [0, 1, 2]
    for answered in (stored.replies(dialect), replies(together, dialect, turn_id="turn_1")):
        assert refusal(dialect, request(dialect, [*history(whole, dialect, turn_id="turn_1"), *answered])) is None
