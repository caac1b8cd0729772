"""Cohere v2 beyond the conformance streams: what violates it, what goes back, its library's objects, its requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.support.stream.provider_server import ProviderServer, Reply
from tests.support.stream.transcripts import CONFORMANCE, RecordedStream, answer, decode, exact, transcripts
from tests.support.stream.turns import outcomes, turn
from tests.support.stream.wire import event
from toolonce.store.model.parts import ImagePart, JsonPart, Parts, TextPart
from toolonce.store.model.states import State
from toolonce.stream import TurnDecoder, TurnResult, decode_body
from toolonce.stream.dialects.request import request_body, user_message
from toolonce.stream.harness.history import history, replies

COMPLETED = [t for t in transcripts(CONFORMANCE) if t.dialect == "cohere" and t.answer["outcome"] == "completed"]
# The library drops a last event without its blank line.
READ_BY_THE_SDK = [t for t in COMPLETED if t.kind == "stream" and t.end == "eof" and "no_blank_line" not in t.key]


def frame(kind: str, message: dict[str, Any] | None = None, **more: Any) -> bytes:
    said = {} if message is None else {"delta": {"message": message}}
    return event({"type": kind, **more, **said}, kind)


def start(index: object, name: str = "f", arguments: object = "", **more: Any) -> bytes:
    call = {"id": f"id_{index}", "type": "function", "function": {"name": name, "arguments": arguments}, **more}
    return frame("tool-call-start", {"tool_calls": call}, index=index)


def delta(index: object, arguments: object) -> bytes:
    return frame("tool-call-delta", {"tool_calls": {"function": {"arguments": arguments}}}, index=index)


def stop(index: object) -> bytes:
    return frame("tool-call-end", index=index)


def said(index: int, kind: str, words: str) -> bytes:
    first = frame("content-start", {"content": {"type": kind, kind: ""}}, index=index)
    return first + frame("content-delta", {"content": {kind: words}}, index=index) + frame("content-end", index=index)


def end(reason: object = "TOOL_CALL", **more: Any) -> bytes:
    return frame("message-end", delta={"finish_reason": reason, **more})


CALL = start(0) + delta(0, '{"a":1}') + stop(0)
BEGIN = frame("message-start", {"tool_calls": []}, id="t1")


def fed(data: bytes, **options: Any) -> TurnResult:
    decoder = TurnDecoder("cohere", **options)
    decoder.feed(data)
    return decoder.eof()


@pytest.mark.parametrize(
    "data",
    [
        BEGIN + BEGIN + CALL + end(),
        CALL + start(0) + stop(0) + end(),
        CALL + delta(0, " ") + end(),
        CALL + stop(0) + end(),
        CALL + delta(1, "{}") + end(),
        CALL + stop(1) + end(),
        CALL + start(1) + end(),
        CALL + start(None) + end(),
        CALL + start("1") + stop("1") + end(),
        CALL + start(True) + stop(True) + end(),
        CALL + end() + end(),
        CALL + end() + said(0, "text", "x"),
        CALL + end() + frame("tool-plan-delta", {"tool_plan": "x"}),
        CALL + frame("tool-call-start", {"tool_calls": []}, index=1) + stop(1) + end(),
        CALL + frame("tool-call-start", {"tool_calls": [{}, {}]}, index=1) + stop(1) + end(),
        frame("message-start", {"tool_calls": [{"id": "x"}]}) + CALL + end(),
        start(0, arguments={"a": 1}) + delta(0, '{"a":1}') + stop(0) + end(),
        start(0, name="") + stop(0) + end(),
        CALL + frame("tool-call-delta", {"tool_calls": {"function": {"name": "g"}}}, index=0) + end(),
    ],
)
def test_what_violates_the_protocol_is_malformed(data: bytes) -> None:
    assert fed(data).outcome == "malformed"


@pytest.mark.parametrize(
    ("data", "outcome"),
    [
        (CALL + end(None), "withheld"),
        (CALL + frame("message-end"), "withheld"),
        (CALL + end("STOP_SEQUENCE"), "withheld"),
        (CALL + end("USER_CANCEL"), "withheld"),
        (CALL + end(["TOOL_CALL"]), "withheld"),
        (CALL + end(error=""), "failed"),
        (CALL + end("MAX_TOKENS"), "truncated"),
        (CALL + start(1) + end("MAX_TOKENS"), "truncated"),
    ],
)
def test_an_end_that_does_not_say_run_runs_nothing(data: bytes, outcome: str) -> None:
    assert (fed(data).outcome, fed(data).calls) == (outcome, ())


def test_a_call_may_come_as_the_documentation_has_it_and_calls_of_other_types_are_not_ours() -> None:
    call = {"id": "id_0", "type": "function", "function": {"name": "f", "arguments": '{"a":'}}
    rest = {"function": {"arguments": "1}"}}
    listed = frame("tool-call-start", {"tool_calls": [call]}, index=0)
    listed += frame("tool-call-delta", {"tool_calls": [rest]}, index=0) + stop(0)
    other = start(1, type="web_search") + delta(1, "{") + stop(1)

    for data in (listed + end(), CALL + other + end()):
        assert [(call.name, call.arguments) for call in fed(data).calls] == [("f", {"a": 1})]


def test_usage_is_told_as_integers_and_a_limit_that_was_used_up_cuts_the_turn() -> None:
    usage = {"billed_units": {"output_tokens": 3}, "tokens": {"input_tokens": 2.0, "output_tokens": 5.0}}
    result = fed(BEGIN + CALL + end(usage=usage))

    assert (result.tokens_seen, type(result.tokens_seen), result.turn_id) == (5, int, "t1")
    assert fed(BEGIN + CALL + end(usage=usage), max_tokens=5).outcome == "truncated"
    assert fed(BEGIN + CALL + end(usage=usage), max_tokens=6).outcome == "completed"
    assert fed(CALL + end()).usage is None


def test_text_beside_calls_goes_back_as_the_plan_since_the_service_refuses_both() -> None:
    plan = frame("tool-plan-delta", {"tool_plan": "I will "}) + frame("tool-plan-delta", {"tool_plan": "look."})
    result = fed(said(0, "thinking", "hm") + plan + said(1, "text", "Wait.") + CALL + end())
    call = {"id": "id_0", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}

    assert result.text == "Wait."
    assert history(result, "cohere") == [
        {
            "role": "assistant",
            "tool_calls": [call],
            "tool_plan": "I will look.\nWait.",
            "content": [{"type": "thinking", "thinking": "hm"}],
        }
    ]


def test_text_goes_back_as_content_in_order_and_an_empty_turn_not_at_all() -> None:
    unknown = frame("content-start", {"content": {"type": "image", "text": "x"}}, index=2)
    result = fed(said(1, "text", "Hi") + said(0, "thinking", "hm") + unknown + said(3, "text", " ") + end("COMPLETE"))
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hi"}]

    assert result.text == "Hi "
    assert history(result, "cohere") == [{"role": "assistant", "content": content}]
    assert history(fed(BEGIN + end("COMPLETE")), "cohere") == []


def test_results_are_documents_where_they_are_objects_and_an_error_says_so_in_its_data() -> None:
    asked = turn("cohere")
    rich = Parts((TextPart("two"), JsonPart({"n": 1}), JsonPart({"n": 2**60}), ImagePart("image/png", data="iVBO")))
    first, second, third = outcomes(asked, value=rich.to_json())
    empty = replace(second, value="")
    unknown = outcomes(asked, state=State.UNKNOWN)[2]
    messages = replies([first, empty, unknown], "cohere", turn_id="turn_1")

    assert [message["tool_call_id"] for message in messages] == ["call_a", "call_b", "call_c"]
    text, document, exact_text, picture = messages[0]["content"]
    assert (text, document) == ({"type": "text", "text": "two"}, {"type": "document", "document": {"data": {"n": 1}}})
    assert exact_text == {"type": "text", "text": f'{{"n":{2**60}}}'}
    assert picture["text"].startswith("[image")
    assert messages[1]["content"] == [{"type": "text", "text": "(empty)"}]
    [problem] = messages[2]["content"]
    assert "not known whether it took effect" in problem["document"]["data"]["error"]
    assert third.position == 2


def test_a_request_holds_the_history_and_asks_for_a_stream() -> None:
    asked = user_message("Well?", "cohere")

    assert request_body({"model": "m"}, [asked], "cohere") == {"model": "m", "messages": [asked], "stream": True}


@pytest.fixture
def client() -> Iterator[tuple[ProviderServer, Any]]:
    cohere = pytest.importorskip("cohere", reason="cohere is not installed: pip install --group sdk")
    with ProviderServer() as server:
        yield server, cohere.ClientV2("none", base_url=server.url)


@pytest.mark.parametrize("transcript", [pytest.param(t, id=t.key) for t in READ_BY_THE_SDK])
def test_the_librarys_parsed_events_give_the_same_turn_as_the_bytes(client: Any, transcript: RecordedStream) -> None:
    server, sdk = client
    server.script.append(Reply(transcript.data))
    decoder = TurnDecoder("cohere")
    for parsed in sdk.chat_stream(model="m", messages=[user_message("Well?", "cohere")]):
        decoder.feed_event(parsed)
    result = decoder.eof()

    assert exact(answer(result)) == exact(transcript.answer)
    assert replace(result, bytes_seen=0, usage=None) == replace(decode(transcript), bytes_seen=0, usage=None)


def test_the_librarys_response_is_read_like_the_body(client: Any) -> None:
    server, sdk = client
    data = (CONFORMANCE / "cohere" / "coh_body_calls.json").read_bytes()
    server.script.append(data)
    response = sdk.chat(model="m", messages=[user_message("Well?", "cohere")])
    ours, theirs = decode_body(data, "cohere"), decode_body(response, "cohere")

    assert len(ours.calls) == 2
    assert replace(theirs, bytes_seen=0, usage=None) == replace(ours, bytes_seen=0, usage=None)
    assert theirs.tokens_seen == ours.tokens_seen == 2
    assert decode_body(json.loads(data), "cohere").calls == ours.calls


def test_an_answer_of_version_1_is_no_chat_turn_without_text_and_calls() -> None:
    calls = [{"name": "f", "parameters": {}}]
    for said in ({"text": "Hi"}, {"text": "", "tool_calls": calls}):
        result = decode_body({"generation_id": "g", "finish_reason": "COMPLETE", **said}, "cohere")

        assert result.outcome == "malformed"
        assert "version 1" in result.diagnostics[0]
