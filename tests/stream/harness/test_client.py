"""Submitting: what is admitted, what is answered, what is refused, and what a lost reply changes."""

from __future__ import annotations

import itertools
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from tests.support.servers.proxy import FaultProxy
from tests.support.servers.redis_server import RealServer
from tests.support.stream.harness import PAY, Bench, call, calls
from tests.support.stream.turns import Asked, turn
from toolonce.store.connections.connection import Connection
from toolonce.store.model.errors import (
    KeyringMissing,
    NoToolsPublished,
    StoreFull,
    StoreMisuse,
    StoreUnavailable,
    TurnIdMissing,
)
from toolonce.store.model.states import State
from toolonce.store.operations.operation import Invocation, load
from toolonce.store.operations.tools import publish, published
from toolonce.stream.decoding.decoder import TurnDecoder
from toolonce.stream.harness.client import Client
from toolonce.stream.turns.errors import TurnTruncated
from toolonce.stream.turns.turn import DIALECTS, RejectedCall, ToolCall, TurnResult

ANTHROPIC = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[]}}\n\n'
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
    b'"content_block":{"type":"tool_use","id":"toolu_1","name":"pay","input":{}}}\n\n'
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
    b'"delta":{"type":"input_json_delta","partial_json":"{\\"n\\": 7}"}}\n\n'
)
ANTHROPIC_END = (
    b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)


def decoded(data: bytes) -> TurnResult:
    decoder = TurnDecoder("anthropic")
    decoder.feed(data)
    return decoder.eof()


def test_a_stream_becomes_a_call_an_outcome_and_a_provider_message(bench: Bench) -> None:
    batch = bench.client.submit(decoded(ANTHROPIC + ANTHROPIC_END))
    run = bench.run_next({"paid": 7})
    batch.wait(5)

    assert run.arguments == '{"n":7}'
    assert batch.turn_id == "msg_1"
    assert batch.outcomes[0].value == {"paid": 7}
    [assistant, results] = [*batch.history(), *batch.replies()]
    assert assistant["role"] == "assistant"
    assert results["content"][0]["tool_use_id"] == "toolu_1"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_of_every_dialect_are_run_once_and_answered_in_call_order(bench: Bench, dialect: Any) -> None:
    result = turn(dialect, [Asked("pay", "a", {"n": 1}), Asked("look", "b"), Asked("pay", "c", {"n": 3})])
    batch = bench.client.submit(result)
    bench.run_all(["first", "second", "third"])
    bench.client.submit(result)

    assert [outcome.value for outcome in batch.wait(5)] == ["first", "second", "third"]
    assert bench.scene.queued_jobs() == []


def test_a_cut_stream_stores_nothing(bench: Bench) -> None:
    with pytest.raises(TurnTruncated):
        bench.client.submit(decoded(ANTHROPIC))

    assert bench.store.redis.keys(f"{{{bench.namespace}}}:call:*") == []
    assert bench.admitted == 0


def test_a_draft_cannot_be_submitted(bench: Bench) -> None:
    decoder = TurnDecoder("anthropic")
    drafts = decoder.feed(ANTHROPIC + ANTHROPIC_END)

    assert drafts
    for unfinished in (drafts[-1], decoder, None):
        with pytest.raises(TypeError, match="drafts never run"):
            bench.client.submit(unfinished)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not"):
        bench.client.submit_calls([drafts[-1]], turn_id="t")  # type: ignore[list-item]
    assert bench.admitted == 0


def test_a_repeated_submission_is_answered_and_runs_nothing(bench: Bench) -> None:
    bench.client.submit_calls(calls(1, 2), turn_id="t")
    ran = bench.run_all([None, 0])
    again = bench.another_client().submit_calls(calls(1, 2), turn_id="t")

    assert [outcome.key for outcome in again.outcomes] == ran
    assert [outcome.value for outcome in again.outcomes] == [None, 0]
    assert all(outcome.replayed and outcome.state is State.SUCCEEDED for outcome in again.outcomes)
    assert bench.admitted == 2


def test_other_arguments_under_the_same_id_are_a_conflict_and_the_siblings_go_on(bench: Bench) -> None:
    bench.client.submit_calls(calls(1), turn_id="t")
    batch = bench.client.submit_calls(calls(9, 2), turn_id="t")
    bench.run_all(["one", "two"])

    first, second = batch.wait(5)
    assert first.conflict
    assert first.failure
    assert first.failure.code == "conflict"
    assert first.value is None
    assert second.value == "two"
    assert bench.admitted == 2


def test_the_same_ids_in_the_next_turn_are_other_calls(bench: Bench) -> None:
    for step in range(3):
        bench.client.submit_calls([call("look", "call_0")], turn_id=f"step-{step}")

    assert bench.admitted == 3


def test_two_calls_under_one_id_in_one_response_both_run(bench: Bench) -> None:
    batch = bench.client.submit_calls([call("pay", "k1", 0, n=1), call("pay", "k1", 1, n=2)], turn_id="t")
    bench.run_all(["one", "two"])

    assert [outcome.value for outcome in batch.wait(5)] == ["one", "two"]


@pytest.mark.parametrize("came", [None, "", "  ", "chatcmpl-7", "chatcmpl-999"])
def test_a_turn_without_a_usable_id_is_refused_until_the_harness_gives_one(bench: Bench, came: str | None) -> None:
    result = turn("openai-chat", [Asked("look", "a")], turn_id=came)  # type: ignore[arg-type]

    with pytest.raises(TurnIdMissing, match="give turn_id"):
        bench.client.submit(result)
    assert bench.client.submit(result, turn_id="step-1").turn_id == "step-1"


@pytest.mark.parametrize("half", ["\ud800", "a\udcff"])
def test_a_name_with_half_of_a_surrogate_pair_is_refused_in_words_before_anything_is_asked(
    bench: Bench, half: str
) -> None:
    with pytest.raises(StoreMisuse, match=r"turn id .* is not valid UTF-8"):
        bench.client.submit_calls(calls(1), turn_id=half)
    with pytest.raises(StoreMisuse, match=r"turn id .* is not valid UTF-8"):
        bench.client.submit(turn("openai-chat", [Asked("look", "a")], turn_id="t"), turn_id=half)
    with pytest.raises(StoreMisuse, match=r"scope .* is not valid UTF-8"):
        bench.another_client(half)
    with pytest.raises(StoreMisuse, match=r"tenant .* is not valid UTF-8"):
        bench.another_client(tenant=half)


def test_without_any_published_tool_a_submission_says_what_is_missing(redis_server: RealServer, namespace: str) -> None:
    empty = Bench(redis_server.url, namespace)
    with pytest.raises(NoToolsPublished, match="toolonce work"):
        empty.client.submit_calls(calls(1), turn_id="t")
    empty.close()


def test_replays_need_no_published_tool(bench: Bench) -> None:
    bench.client.submit_calls(calls(1), turn_id="t")
    bench.run_next("kept")
    for name in ("tools", "newest", "tools_version"):
        bench.store.redis.delete(f"{{{bench.namespace}}}:{name}")

    assert bench.another_client().submit_calls(calls(1), turn_id="t").outcomes[0].value == "kept"


def test_what_the_model_got_wrong_is_stored_as_refused_and_answered_the_same_again(bench: Bench) -> None:
    asked: list[ToolCall | RejectedCall] = [
        call("pay", "a", 0, n="twelve"),
        call("nope", "b", 1),
        RejectedCall("pay", "c", "invalid_json", 2, '{"n": '),
        call("pay", "d", 3, n=1),
    ]
    first = bench.client.submit_calls(asked, turn_id="t").outcomes
    again = bench.client.submit_calls(asked, turn_id="t").outcomes

    codes = [outcome.failure.code if outcome.failure else "" for outcome in first]
    assert codes == ["invalid_arguments", "unknown_tool", "invalid_arguments", ""]
    assert [outcome.failure for outcome in again] == [outcome.failure for outcome in first]
    assert len(bench.scene.queued_jobs()) == 1


def test_scopes_do_not_see_each_other(bench: Bench) -> None:
    mine = bench.client.submit_calls(calls(1), turn_id="t").outcomes[0]
    other = bench.another_client("tenant-2/talk-1").submit_calls(calls(1), turn_id="t").outcomes[0]

    assert mine.key != other.key
    assert bench.admitted == 2


@pytest.mark.parametrize("word", [b"HMGET", load("admit").sha.encode()], ids=["lookup", "admit"])
def test_a_lost_reply_to_submit_admits_nothing_twice(redis_server: RealServer, namespace: str, word: bytes) -> None:
    bench = Bench(redis_server.url, namespace, PAY)
    bench.client.submit_calls(calls(0), turn_id="warm")  # the server knows the scripts: EVALSHA is what is sent
    with FaultProxy(redis_server.socket) as proxy:
        client = bench.another_client(url=proxy.url)
        client.run(published(client.terms.space))
        proxy.drop_reply_to(word)
        batch = client.submit_calls(calls(1, 2), turn_id="t")

        assert not proxy.armed
        assert [outcome.replayed or outcome.conflict for outcome in batch.outcomes] == [False, False]
        assert len(bench.scene.queued_jobs()) == bench.admitted == 3
        client.close()
    bench.close()


def test_an_intent_key_finds_the_call_of_a_regenerated_turn(bench: Bench) -> None:
    first = bench.client.submit_calls([call("pay", "x1", n=5)], turn_id="t1", intent="invoice-5")
    second = bench.client.submit_calls([call("pay", "x2", n=5)], turn_id="t2", intent="invoice-5")

    assert second.outcomes[0].key == first.outcomes[0].key
    assert second.outcomes[0].call_id == "x2"
    assert bench.admitted == 1


NO_PROTECTION: dict[str, Any] = {
    "beyond the turn": {2: "k"},
    "before the turn": {-1: "k"},
    "a position as text": {"0": "k"},
    "an empty key": {0: ""},
    "an empty key of the turn's one call": "",
    "a number for a key": {0: 7},
    "one key twice": {0: "k", 1: "k"},
}


@pytest.mark.parametrize("what", NO_PROTECTION)
def test_an_intent_key_that_would_protect_nothing_is_refused(bench: Bench, what: str) -> None:
    asked = calls(1) if what.endswith("one call") else calls(1, 2)
    with pytest.raises(ValueError, match="intent key"):
        bench.client.submit_calls(asked, turn_id="t", intent=NO_PROTECTION[what])


def test_an_intent_key_may_come_with_a_turn_that_asks_for_nothing(bench: Bench) -> None:
    assert bench.client.submit_calls([], turn_id="t", intent="k").outcomes == ()


def test_one_intent_key_for_several_calls_is_refused(bench: Bench) -> None:
    with pytest.raises(ValueError, match="mapping"):
        bench.client.submit_calls(calls(1, 2), turn_id="t", intent="k")


def test_an_unknown_turn_is_said_to_be_unknown(bench: Bench) -> None:
    with pytest.raises(StoreMisuse, match="no calls are stored for turn 'nowhere'"):
        bench.client.batch("nowhere")


def test_a_waiting_call_can_be_cancelled_and_says_that_nothing_ran(bench: Bench) -> None:
    batch = bench.client.submit_calls(calls(1), turn_id="t")
    bench.client.cancel(batch.outcomes[0].key, reason="the user closed the chat")

    assert batch.wait(5)[0].state is State.CANCELLED
    assert "Nothing was executed" in batch.for_model()[0]
    assert "Nothing was done" in batch.for_user()[0]
    assert "nada" in batch.for_user("es-MX")[0]


def test_turns_of_no_calls_are_empty_batches(bench: Bench) -> None:
    batch = bench.client.submit(turn("anthropic", []))

    assert batch.wait(5) == ()
    assert batch.replies() == []
    assert len(batch.history()) == 1


def test_a_connection_that_is_lent_to_a_client_keeps_its_namespace_and_stays_open(bench: Bench) -> None:
    lent = Connection(bench.url, namespace=bench.namespace)
    with Client(lent, scope="tenant-1/talk-1") as client:
        client.submit_calls(calls(1), turn_id="t")
    links = list(lent._idle)
    lent.ping()

    assert bench.client.batch("t").outcomes
    assert links
    assert lent._idle == links
    lent.close()


def test_a_call_is_judged_by_the_specs_that_are_published_when_it_is_admitted(bench: Bench) -> None:
    bench.client.submit_calls(calls(1), turn_id="t1")  # the client knows the specs of now
    stricter = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}
    bench.scene.run(publish(bench.scene.space, [replace(PAY, version="2", schema=stricter)]))

    (outcome,) = bench.client.submit_calls(calls(2), turn_id="t2").outcomes

    assert (outcome.state, outcome.failure and outcome.failure.code) == (State.REFUSED, "invalid_arguments")
    assert len(bench.scene.queued_jobs()) == 1


def test_a_full_queue_of_before_does_not_bar_a_tool_that_has_moved_to_another(bench: Bench) -> None:
    client = bench.client
    client.terms = replace(client.terms, queue_limit=1)
    client.submit_calls(calls(1), turn_id="t1")
    with pytest.raises(StoreFull):
        client.submit_calls(calls(2), turn_id="t2")
    bench.scene.run(publish(bench.scene.space, [replace(PAY, version="2", queue="fast")]))

    assert client.submit_calls(calls(2), turn_id="t2").outcomes[0].state is State.QUEUED


def test_a_tool_that_no_longer_has_secrets_needs_no_keys(bench: Bench) -> None:
    bench.scene.run(publish(bench.scene.space, [replace(PAY, version="2", secret=("$.n",))]))
    with pytest.raises(KeyringMissing):
        bench.client.submit_calls(calls(1), turn_id="t")
    bench.scene.run(publish(bench.scene.space, [replace(PAY, version="3")]))

    assert bench.client.submit_calls(calls(1), turn_id="t").outcomes[0].state is State.QUEUED


def test_specs_that_never_stand_still_end_in_an_error_and_store_nothing(bench: Bench) -> None:
    versions = itertools.count(2)

    class Unlucky(Connection):
        def run(self, operation: Any) -> Any:
            if isinstance(operation, Invocation) and operation.script.name == "admit":
                bench.scene.run(publish(bench.scene.space, [replace(PAY, version=str(next(versions)))]))
            return super().run(operation)

    with closing(Unlucky(bench.url, namespace=bench.namespace)) as connection:
        client = Client(connection, scope="tenant-1/talk-1")
        with pytest.raises(StoreUnavailable, match="faster than"):
            client.submit_calls(calls(1), turn_id="t")
        client.close()

    assert bench.admitted == 0
