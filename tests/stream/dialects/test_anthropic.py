"""Anthropic blocks out of order, handed over, paused; and what goes back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stream.feeding import Frame, decoded, short

START: Frame = {"type": "message_start", "message": {"id": "m1", "usage": {"input_tokens": 3, "output_tokens": 1}}}
STOP: Frame = {"type": "message_stop"}


def block(index: object, **content: Any) -> Frame:
    return {"type": "content_block_start", "index": index, "content_block": content}


def delta(index: object, kind: str, **more: Any) -> Frame:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **more}}


def close(index: object) -> Frame:
    return {"type": "content_block_stop", "index": index}


def end(reason: str | None = "tool_use") -> Frame:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}}


def tool(index: int, call_id: str = "t1", name: str = "f", text: str = "{}", **more: Any) -> list[Frame]:
    start = block(index, type="tool_use", id=call_id, name=name, input={}, **more)
    return [start, delta(index, "input_json_delta", partial_json=text), close(index)]


def outcome(*frames: Frame) -> str:
    return decoded("anthropic", *frames).outcome


def test_blocks_may_be_open_side_by_side() -> None:
    (a, b, c), (d, e, f) = tool(0, text='{"a":1}'), tool(1, "t2", text='{"b":2}')
    result = decoded("anthropic", START, a, d, e, b, f, c, end(), STOP)

    assert short(result) == ("completed", [("f", "t1", {"a": 1}), ("f", "t2", {"b": 2})], [])


@pytest.mark.parametrize("index", [1, -1, "0", None, True, 0.0])
def test_the_first_block_has_the_number_0(index: object) -> None:
    assert outcome(START, block(index, type="text", text=""), end("end_turn"), STOP) == "malformed"


def test_what_stands_outside_of_its_block_is_malformed() -> None:
    assert outcome(START, delta(0, "text_delta", text="x"), end("end_turn"), STOP) == "malformed"
    assert outcome(START, *tool(0), delta(0, "input_json_delta", partial_json=" "), end(), STOP) == "malformed"
    assert outcome(START, *tool(0), close(0), end(), STOP) == "malformed"
    assert outcome(*tool(0), end(), STOP) == "malformed"
    assert outcome(START, end(), *tool(0), STOP) == "malformed"
    assert outcome(START, *tool(0), end(), STOP, end()) == "malformed"


def test_a_ping_after_the_end_changes_nothing() -> None:
    assert outcome(START, *tool(0), end(), STOP, {"type": "ping"}) == "completed"


def test_an_error_after_the_end_voids_the_turn() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    result = decoded("anthropic", START, *tool(0), end(), STOP, error)

    assert result.outcome == "failed"
    assert result.error is not None
    assert (result.error.code, result.error.message) == ("overloaded_error", "busy")


def test_a_second_message_start_without_an_id_is_no_repeat() -> None:
    bare = {"type": "message_start", "message": {}}

    assert outcome(bare, bare, end("end_turn"), STOP) == "malformed"
    assert outcome(START, START, end("end_turn"), STOP) == "completed"


def test_arguments_under_an_unknown_delta_type_are_not_lost_in_silence() -> None:
    odd = delta(0, "json_piece", partial_json='{"a":1}')

    assert (
        outcome(START, block(0, type="tool_use", id="t", name="f", input={}), odd, close(0), end(), STOP) == "malformed"
    )


def test_an_input_that_is_a_text_is_no_object() -> None:
    start = block(0, type="tool_use", id="t", name="f", input='{"a":1}')

    assert short(decoded("anthropic", START, start, close(0), end(), STOP)) == (
        "completed",
        [],
        [("f", "not_an_object")],
    )


def test_a_cut_call_before_a_hand_over_is_not_judged() -> None:
    fallback = [block(1, type="fallback"), close(1)]
    result = decoded("anthropic", START, *tool(0, text='{"a'), *fallback, *tool(2, "t2"), end(), STOP)

    assert short(result) == ("completed", [("f", "t2", {})], [])
    assert [item.get("id") for item in result.assistant] == [None, "t2"]


def test_an_unfinished_call_comes_before_a_contradiction() -> None:
    assert outcome(START, *tool(0, text='{"a'), end("end_turn"), STOP) == "malformed"
    assert outcome(START, *tool(0, text='{"a'), end("new_word"), STOP) == "withheld"


def test_no_stop_reason_is_withheld() -> None:
    assert outcome(START, *tool(0), end(None), STOP) == "withheld"


def test_what_goes_back_has_thinking_signatures_citations_and_valid_inputs() -> None:
    frames = [
        block(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="hm"),
        delta(0, "signature_delta", signature="c2ln"),
        close(0),
        block(1, type="text", text=""),
        delta(1, "text_delta", text="See"),
        delta(1, "citations_delta", citation={"type": "page_location"}),
        close(1),
        block(2, type="text", text=""),
        close(2),
        *tool(3, "t1", text='{"a":1,}'),
        *tool(4, "t2", text="", caller={"type": "direct"}),
        block(5, type="server_tool_use", id="s", name="web_search", input={}),
        delta(5, "input_json_delta", partial_json='{"q":1}'),
        close(5),
    ]
    result = decoded("anthropic", START, *frames, end(), STOP)

    assert result.assistant == (
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "See", "citations": [{"type": "page_location"}]},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
        {"type": "tool_use", "id": "t2", "name": "f", "input": {}, "caller": {"type": "direct"}},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}},
    )
    assert result.calls[0].echo == {"caller": {"type": "direct"}}
    assert (result.usage, result.tokens_seen) == ({"input_tokens": 3, "output_tokens": 7}, 7)


def test_a_paused_turn_sends_back_its_calls_too() -> None:
    result = decoded("anthropic", START, *tool(0, text='{"a":1}'), end("pause_turn"), STOP)

    assert (result.outcome, result.calls) == ("paused", ())
    assert result.assistant == ({"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},)


def test_a_turn_that_did_not_complete_leaves_the_history_as_it_was() -> None:
    assert decoded("anthropic", START, *tool(0), end("max_tokens"), STOP).assistant == ()
