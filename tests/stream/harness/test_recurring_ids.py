"""Servers that count call ids per turn: in a history each id stands once, on the call and on its result."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.servers.redis_server import RealServer
from tests.support.stream.provider_rules import refusal
from tests.support.stream.turns import Asked, request, turn
from toolonce.store.model.specs import Effect, ToolSpec
from toolonce.store.operations.tools import publish
from toolonce.stream.dialects.table import TABLE
from toolonce.stream.harness.client import Client
from toolonce.stream.harness.history import history, replies
from toolonce.stream.turns.turn import DIALECTS, Dialect, TurnResult

PAIRING = [name for name in DIALECTS if TABLE[name].replies.IDS.pairs]
STAND_IN = re.compile("call_[a-z]{24}")
EACH = pytest.mark.parametrize("dialect", PAIRING)
_numbers = itertools.count()


@dataclass
class Harness:
    """Clients of one scope, each as new as a restarted process."""

    url: str
    namespace: str
    scope: str

    def client(self) -> Client:
        return Client(self.url, scope=self.scope, namespace=self.namespace)

    def submit(self, result: TurnResult, **more: Any) -> Any:
        with self.client() as client:
            return client.submit(result, **more)


@pytest.fixture
def harness(redis_server: RealServer, namespace: str) -> Harness:
    harness = Harness(redis_server.url, namespace, "tenant/1")
    with harness.client() as client:
        client.run(publish(client.terms.space, [ToolSpec("look", effect=Effect.READ)]))
    return harness


def counted(dialect: Dialect, number: int, *ids: str | None) -> TurnResult:
    """A turn of a server that counts its ids again."""
    asked = [Asked("look", call_id, {"turn": number, "place": place}) for place, call_id in enumerate(ids)]
    return turn(dialect, asked, turn_id=f"turn_{number}")


def strings(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for member in value.values():
                yield from strings(member)
        case list():
            for member in value:
                yield from strings(member)
        case str():
            yield value


def sent(batch: Any, dialect: str) -> list[str]:
    """The ids under which the results of a batch go out."""
    names = ("tool_call_id", "call_id", "tool_use_id", "toolUseId")

    def ids(value: Any) -> Iterator[str]:
        match value:
            case dict():
                yield from (value[name] for name in names if name in value)
                for member in value.values():
                    yield from ids(member)
            case list():
                for member in value:
                    yield from ids(member)

    return list(ids(batch.replies(dialect)))


def messages(batches: Iterable[Any], dialect: str) -> list[dict[str, Any]]:
    return [message for batch in batches for message in (*batch.history(dialect), *batch.replies(dialect))]


@pytest.mark.parametrize("came", DIALECTS)
def test_twenty_turns_of_a_server_that_counts_per_turn_have_each_id_once_in_all_dialects(
    harness: Harness, came: Dialect
) -> None:
    turns = [counted(came, number, "call_0", "call_1") for number in range(20)]
    batches = [harness.submit(result) for result in turns]
    again = [harness.submit(result) for result in turns]

    for dialect in DIALECTS:
        assert refusal(dialect, request(dialect, messages(batches, dialect))) is None
        assert messages(batches, dialect) == messages(again, dialect), "another process sends other ids"
    for dialect in PAIRING:
        ids = [call_id for batch in batches for call_id in sent(batch, dialect)]
        assert len(ids) == len(set(ids)) == 40
        assert ids[:2] == ["call_0", "call_1"]
        assert all(STAND_IN.fullmatch(call_id) for call_id in ids[2:])


def test_a_target_that_pairs_by_order_gets_the_ids_as_they_came(harness: Harness) -> None:
    batches = [harness.submit(counted("google-generate", number, "call_0")) for number in range(3)]

    assert [batch.outcomes[0].call_id for batch in batches] == ["call_0"] * 3
    assert [text for text in strings(messages(batches, "google-generate")) if text.startswith("call_")] == [
        "call_0"
    ] * 6


@EACH
def test_a_turn_whose_calls_are_submitted_one_by_one_has_the_ids_of_one_that_came_whole(
    harness: Harness, dialect: Dialect
) -> None:
    harness.submit(counted(dialect, 1, "call_0", "call_1"))
    result = counted(dialect, 2, "call_0", "call_1", "call 2 is refused by some")
    with harness.client() as client:
        parts = [client.submit_calls([call], turn_id="turn_2") for call in reversed(result.calls)]
        outcomes = [batch.outcomes[0] for batch in reversed(parts)]
        whole = client.submit(result)

    assert whole.replies() == replies(outcomes, dialect, turn_id="turn_2")
    assert whole.history() == history(result, dialect, outcomes=outcomes)
    assert [message for batch in reversed(parts) for message in sent(batch, dialect)] == sent(whole, dialect)
    assert refusal(dialect, request(dialect, messages([whole], dialect))) is None


@EACH
def test_equal_ids_of_one_turn_are_told_apart_in_each_turn_where_they_come(harness: Harness, dialect: Dialect) -> None:
    batches = [harness.submit(counted(dialect, number, "same", "same", None, "")) for number in range(3)]

    assert refusal(dialect, request(dialect, messages(batches, dialect))) is None
    assert sent(batches[0], dialect)[0] == "same"
    assert [outcome.reply_id for outcome in batches[0].outcomes] == [None] * 4


@EACH
def test_a_model_that_imitates_a_stand_in_gets_another_one(harness: Harness, dialect: Dialect) -> None:
    first = [harness.submit(counted(dialect, number, "call_0")) for number in range(2)]
    imitated = first[1].outcomes[0].reply_id

    third = harness.submit(counted(dialect, 3, imitated))

    assert third.outcomes[0].call_id == imitated
    assert third.outcomes[0].reply_id != imitated
    assert refusal(dialect, request(dialect, messages([*first, third], dialect))) is None


@EACH
def test_a_call_found_by_its_intent_in_a_later_turn_stands_there_under_an_id_of_its_own(
    harness: Harness, dialect: Dialect
) -> None:
    results = [turn(dialect, [Asked("look", "call_0", {})], turn_id=f"turn_{number}") for number in range(3)]
    batches = [harness.submit(result, intent="step") for result in results]
    again = [harness.submit(result, intent="step") for result in results]

    assert len({batch.outcomes[0].key for batch in batches}) == 1
    assert messages(batches, dialect) == messages(again, dialect)
    assert refusal(dialect, request(dialect, messages(batches, dialect))) is None
    fresh = harness.submit(turn(dialect, [Asked("look", "call_9", {})], turn_id="turn_9"), intent="step")
    assert sent(fresh, dialect) == ["call_9"]


def test_a_conflict_goes_out_under_the_id_of_its_place(harness: Harness) -> None:
    harness.submit(counted("anthropic", 1, "call_0"))
    stored = harness.submit(counted("anthropic", 2, "call_0"))
    other = turn("anthropic", [Asked("look", "call_0", {"another": 1})], turn_id="turn_2")

    batch = harness.submit(other)

    assert batch.outcomes[0].conflict
    assert sent(batch, "anthropic") == sent(stored, "anthropic")
    assert refusal("anthropic", request("anthropic", messages([batch], "anthropic"))) is None


def test_mistrals_form_has_nine_characters_and_a_provider_that_keeps_the_calls_gets_its_own_ids(
    harness: Harness,
) -> None:
    batches = [harness.submit(counted("openai-chat", number, "call_0", "abcdef123")) for number in range(3)]

    nine = [text for batch in batches for text in (message["tool_call_id"] for message in batch.replies(ids="nine"))]
    assert len(set(nine)) == 6
    assert nine[1] == "abcdef123"
    assert all(re.fullmatch("[a-z0-9]{9}", call_id) for call_id in nine)
    both = [(*batch.history(ids="nine"), *batch.replies(ids="nine")) for batch in batches]
    assert refusal("openai-chat", request("openai-chat", [one for part in both for one in part])) is None
    assert [one["tool_call_id"] for one in batches[2].replies(ids="as_they_came")] == ["call_0", "abcdef123"]


def test_turns_that_are_submitted_at_once_agree_on_one_that_keeps_its_ids(harness: Harness) -> None:
    turns = [counted("openai-chat", number, "call_0", "call_1") for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        batches = list(pool.map(harness.submit, turns))

    ids = [call_id for batch in batches for call_id in sent(batch, "openai-chat")]
    assert len(set(ids)) == 16
    assert {"call_0", "call_1"} <= set(ids)
    assert messages(map(harness.submit, turns), "openai-chat") == messages(batches, "openai-chat")


def test_another_scope_counts_for_itself(harness: Harness) -> None:
    harness.submit(counted("anthropic", 1, "call_0"))

    other = Harness(harness.url, harness.namespace, "tenant/2").submit(counted("anthropic", 2, "call_0"))

    assert other.outcomes[0].reply_id is None


IDS = st.none() | st.sampled_from(["call_0", "call_1", "functions.look:0", "x" * 70, "a/b", "abcdefghi"])
TURNS = st.lists(st.tuples(st.sampled_from(DIALECTS), st.lists(IDS, min_size=1, max_size=4)), min_size=1, max_size=6)


@given(turns=TURNS, parts=st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_history_of_turns_with_recurring_ids_is_taken_by_every_target(
    harness: Harness, turns: list[tuple[Dialect, list[str | None]]], parts: Any
) -> None:
    here = Harness(harness.url, harness.namespace, f"tenant/{next(_numbers)}")
    results = [counted(came, number, *ids) for number, (came, ids) in enumerate(turns)]
    for result in results:
        if parts.random() < 0.5 and len(set(ids := [call.call_id for call in result.calls])) == len(ids):
            with here.client() as client:  # one by one, in any order; whole afterwards
                for call in parts.sample(result.calls, len(ids)):
                    client.submit_calls([call], turn_id=str(result.turn_id))
        here.submit(result)
    batches = [here.submit(result) for result in results]

    for dialect in DIALECTS:
        assert refusal(dialect, request(dialect, messages(batches, dialect))) is None
    for dialect in PAIRING:
        ids = [call_id for batch in batches for call_id in sent(batch, dialect)]
        assert len(ids) == len(set(ids)) == sum(len(ids) for _, ids in turns)
        rule, seen = TABLE[dialect].replies.IDS, set[str | None]()
        for came, went in zip([call_id for _, each in turns for call_id in each], ids, strict=True):
            assert went == came or came in seen or not rule.accepts(came), "a first occurrence was changed"
            seen.add(came)
