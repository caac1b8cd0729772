"""Ids and results: what models and servers do to call ids, and that each call runs once and gets its own result."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.stream.harness import Bench, call
from tests.support.stream.speech import stream
from tests.support.stream.turns import Asked, turn
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations.recovery import reclaim
from toolonce.store.operations.runs import Run
from toolonce.stream.decoding.decoder import TurnDecoder
from toolonce.stream.turns.errors import TurnError
from toolonce.stream.turns.turn import DIALECTS, Dialect, TurnResult

RESULT_IDS: dict[str, Any] = {
    "anthropic": lambda messages: [block["tool_use_id"] for block in messages[0]["content"]],
    "openai-chat": lambda messages: [message["tool_call_id"] for message in messages],
    "openai-responses": lambda messages: [item["call_id"] for item in messages],
}


def decoded(dialect: Dialect, data: bytes, *, end: str = "eof") -> TurnResult:
    decoder = TurnDecoder(dialect)
    decoder.feed(data)
    return decoder.eof() if end == "eof" else decoder.abort(end)


def test_a_model_that_counts_its_calls_per_message_has_every_one_of_them_run(bench: Bench) -> None:
    turns: list[tuple[str, dict[str, Any]]] = [
        ("look:0", {"p": "a"}),
        ("look:0", {"p": "b"}),
        ("now:0", {}),
        ("now:0", {}),
        *[("0", {})] * 50,
    ]
    for number, (call_id, arguments) in enumerate(turns):
        batch = bench.client.submit_calls([call("look", call_id, **arguments)], turn_id=f"step-{number}")
        bench.run_next(number)
        assert batch.wait(5)[0].value == number
    again = bench.client.submit_calls([call("look", "now:0")], turn_id="step-3")

    assert again.outcomes[0].value == 3
    assert again.outcomes[0].replayed
    assert bench.admitted == len(turns)


@pytest.mark.parametrize(
    ("second", "values"),
    [(("look", {"k": 2}), [1, 2]), (("look", {"k": 1}), [1, 2]), (("pay", {"n": 2}), [1, 2])],
    ids=["other arguments", "all equal", "another tool"],
)
def test_two_calls_under_one_id_in_one_response_each_get_their_own_result(
    bench: Bench, second: tuple[str, dict[str, Any]], values: list[int]
) -> None:
    calls = [call("look", "k1", 0, k=1), call(second[0], "k1", 1, **second[1])]
    batch = bench.client.submit_calls(calls, turn_id="t")
    bench.run_all(values)

    assert [outcome.value for outcome in batch.wait(5)] == values
    assert [outcome.value for outcome in bench.client.submit_calls(calls, turn_id="t").outcomes] == values


def test_calls_without_ids_are_told_apart_and_a_replay_gives_them_the_same_ones(bench: Bench) -> None:
    quotes = [Asked("look", None, {"s": stock}) for stock in ("AA", "BB", "CC")]
    result = turn("google-generate", quotes)
    batch = bench.client.submit(result)
    bench.run_all(["a", "b", "c"])
    replayed = bench.another_client().submit(result)

    assert len({outcome.key for outcome in batch.outcomes}) == 3
    parts = batch.replies()[0]["parts"] if batch.wait(5) else []
    assert [part["functionResponse"]["name"] for part in parts] == ["look"] * 3
    assert ["id" in part["functionResponse"] for part in parts] == [False] * 3
    assert replayed.replies() == batch.replies()
    assert bench.admitted == 3
    assert replayed.replies("openai-chat") == batch.replies("openai-chat")


IDS = ["a" * size for size in (40, 41, 64, 65, 1400)] + ["fn.lookup:0", "a/b", " ", "é", ""]


@pytest.mark.parametrize("dialect", RESULT_IDS)
@pytest.mark.parametrize("call_id", IDS, ids=lambda text: repr(text[:12]) + str(len(text)))
def test_a_strange_id_fits_the_target_on_both_sides_and_for_every_process(
    bench: Bench, dialect: Any, call_id: str
) -> None:
    result = turn("openai-chat", [Asked("look", call_id)])
    batch = bench.client.submit(result)
    bench.run_next("seen")
    batch.wait(5)
    other = bench.another_client().submit(result)

    [sent] = RESULT_IDS[dialect](batch.replies(dialect))
    assert 0 < len(sent) <= {"openai-chat": 40, "openai-responses": 64}.get(dialect, 256)
    assert dialect != "anthropic" or re.fullmatch("[a-zA-Z0-9_-]+", sent)
    assert json.dumps(sent) in json.dumps(batch.history(dialect))
    assert other.replies(dialect) == batch.replies(dialect)
    assert batch.outcomes[0].call_id == call_id


@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_that_end_in_any_order_and_any_way_are_one_set_of_results_in_call_order(
    bench: Bench, dialect: Any
) -> None:
    asked = [Asked("pay", f"c{n}", {"n": n}) for n in range(5)]
    batch = bench.client.submit(turn(dialect, asked))
    runs = [bench.scene.take(lease_ms=1 if n == 3 else 10_000) for n in range(5)]
    for place in (2, 0, 4):
        bench.scene.settle(runs[place], f"value {place}")
    bench.scene.fail(runs[1])
    lose(bench, runs[3])

    states = [outcome.state for outcome in batch.wait(5)]
    assert states == [State.SUCCEEDED, State.FAILED, State.SUCCEEDED, State.UNKNOWN, State.SUCCEEDED]
    text = json.dumps(batch.replies())
    assert [text.count(f'"c{n}"') for n in range(5)] == [1] * 5
    assert [text.index(f'"c{n}"') for n in range(5)] == sorted(text.index(f'"c{n}"') for n in range(5))
    assert "not known whether it took effect" in text
    assert len(batch.replies()) == (1 if dialect in ("anthropic", "google-generate", "bedrock-converse") else 5)


def lose(bench: Bench, run: Run) -> None:
    def lost() -> bool:
        bench.client.run(reclaim(bench.scene.space, "sweeper"))
        return bench.scene.state(run.call) is State.UNKNOWN

    wait_until(lost, description="the lease runs out")


def test_a_late_outcome_changes_the_record_and_never_adds_a_second_result(bench: Bench) -> None:
    batch = bench.client.submit_calls([call("pay", "c1", n=1)], turn_id="t")
    run = bench.scene.take()
    batch.wait(0.01)
    sent = batch.replies("openai-chat")
    bench.scene.settle(run, "late")

    assert len(sent) == len(batch.replies("openai-chat")) == 1
    assert "do not say that it succeeded" in sent[0]["content"]
    assert bench.client.batch("t").outcomes[0].value == "late"


CUT = {
    "in the middle of the arguments": lambda data: data[: data.rindex(b"n") + 1],
    "after the first whole call": lambda data: data[: data.rindex(b"c2") - 60],
    "before the last event": lambda data: data[: data.rstrip().rfind(b"\n\n")],
}


@pytest.mark.parametrize("end", ["eof", "ReadError"])
@pytest.mark.parametrize("how", CUT)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_turn_that_was_cut_runs_none_of_its_calls_however_whole_they_look(
    bench: Bench, dialect: Dialect, how: str, end: str
) -> None:
    data = stream(dialect, "turn-1", [("pay", "c1", {"n": 1}), ("pay", "c2", {"n": 2})])
    data = data.replace(b"data: [DONE]\n\n", b"").replace(b"event: done\n", b"")
    data = data[: data.find(b"messageStop")]  # in the middle of a binary message; else the last LF
    result = decoded(dialect, CUT[how](data), end=end)

    if result.outcome == "completed":  # the finish reason was there: only the goodbye is missing
        assert how == "before the last event"
        return
    with pytest.raises(TurnError, match=f"turn .* {result.outcome}"):
        bench.client.submit(result)
    assert bench.admitted == 0
    assert bench.store.redis.keys(f"{{{bench.namespace}}}:turn:*") == []


def test_an_empty_argument_text_runs_once_under_a_proper_end_and_never_without_it(bench: Bench) -> None:
    whole = stream("anthropic", "turn-1", [("look", "c1", {})]).replace(b'"partial_json": "{}"', b'"partial_json": ""')
    batch = bench.client.submit(decoded("anthropic", whole))

    assert bench.run_next("ran").arguments == "{}"
    assert batch.wait(5)[0].value == "ran"
    cut = whole.replace(b"turn-1", b"turn-2")[: whole.index(b"event: content_block_stop")]
    with pytest.raises(TurnError, match="truncated"):
        bench.client.submit(decoded("anthropic", cut))
    assert bench.admitted == 1


def test_a_second_attempt_after_an_error_in_mid_stream_leaves_no_trace_of_the_first(bench: Bench) -> None:
    first = stream("anthropic", "m1", [("pay", "a1", {"n": 1})])
    error = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"m"}}\n\n'
    failed = decoded("anthropic", first[: first.index(b"event: message_delta")] + error)
    with pytest.raises(TurnError, match="failed"):
        bench.client.submit(failed)
    batch = bench.client.submit(decoded("anthropic", stream("anthropic", "m2", [("pay", "a2", {"n": 2})])))

    assert [(outcome.call_id, outcome.state) for outcome in batch.outcomes] == [("a2", State.QUEUED)]
    assert bench.run_next("done").arguments == '{"n":2}'
    assert "a1" not in json.dumps([*batch.history(), *batch.replies()])


def test_arguments_that_would_need_repair_are_refused_and_their_siblings_run(bench: Bench) -> None:
    calls = [("pay", "c1", {"n": 1}), ("pay", "c2", {"n": 2})]
    data = stream("openai-chat", "turn-1", calls).replace(rb"{\"n\": 1}", rb"{\"n\": 1,}")
    batch = bench.client.submit(decoded("openai-chat", data))
    bench.run_next("two")
    first, second = batch.wait(5)

    assert (first.state, second.value) == (State.REFUSED, "two")
    assert [message["tool_call_id"] for message in batch.replies()] == ["c1", "c2"]
    assert "not valid JSON" in batch.for_model()[0] or "not accepted" in batch.for_model()[0]
