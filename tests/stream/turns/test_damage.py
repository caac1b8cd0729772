"""Frames whose fields have the wrong type or stand in the wrong place, and bodies that are none: nothing runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.stream.feeding import Frame, decoded, short, stream
from toolonce.stream import DIALECTS, ArgumentsDraft, TurnDecoder, TurnLimits, decode_body
from toolonce.stream.turns.turn import Dialect
from toolonce.stream.wire.arguments import decode_text

START: Frame = {"type": "message_start", "message": {"id": "m"}}
TOOL: Frame = {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "f"}}
TEXT: Frame = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
ENDED: list[Frame] = [
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
]


def chat(**delta: Any) -> Frame:
    return {"choices": [{"index": 0, "delta": delta}]}


CHAT_END: list[Frame | bytes] = [{"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}]
BARE = chat(tool_calls=[{"index": 0, "id": "c"}])
NEW = chat(tool_calls=[{"index": 0, "type": "new"}])
CUSTOM = {"index": 0, "type": "custom", "custom": {"name": "f", "input": {}}}
ONE = chat(tool_calls=[{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}])


def grown(kind: str, **more: Any) -> Frame:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": kind, **more}}


MALFORMED: list[tuple[str, list[Frame | bytes]]] = [
    ("anthropic", [START, TEXT, grown("input_json_delta", partial_json="{}"), *ENDED]),
    ("anthropic", [START, TOOL, grown("text_delta", text="x"), *ENDED]),
    ("anthropic", [{"type": "message_start", "message": {"id": "m", "content": [{"type": "tool_use"}]}}, TOOL, *ENDED]),
    ("openai-chat", [chat(function_call="f"), *CHAT_END]),
    ("openai-chat", [ONE, chat(tool_calls=[{"index": 0, "type": "custom", "custom": {"input": "x"}}]), *CHAT_END]),
    ("openai-chat", [BARE, NEW, *CHAT_END]),
    ("openai-chat", [chat(tool_calls=[CUSTOM]), *CHAT_END]),
    ("openai-chat", [ONE, *CHAT_END, b"data: [DONE]\n\n", *CHAT_END]),
    ("openai-chat", [ONE, b"data: 5\n\n", *CHAT_END]),
    ("openai-chat", [ONE, b"data: [1]\n\n", *CHAT_END]),
    ("openai-chat", [ONE, b"data:  \n\n", *CHAT_END]),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "frames"), MALFORMED)
def test_what_cannot_be_right_is_malformed(dialect: Dialect, frames: list[Frame | bytes]) -> None:
    assert short(decoded(dialect, *frames)) == ("malformed", [], [])


def items(*frames: Frame) -> tuple[Any, ...]:
    done = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    return short(decoded("openai-responses", *frames, done))


def test_an_item_that_changes_its_type_is_malformed() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    added = {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning"}}
    custom = {"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": "x"}
    done = {"type": "response.output_item.done", "output_index": 0, "item": call}

    assert items(added, done)[0] == "malformed"
    assert items({**added, "item": call}, custom, done)[0] == "malformed"


def test_a_refusal_part_is_filtered_and_a_refusal_among_chat_parts_too() -> None:
    part = {"type": "response.content_part.added", "output_index": 0, "part": {"type": "refusal", "refusal": ""}}

    assert items(part)[0] == "filtered"
    assert decoded("openai-chat", chat(content=[{"type": "refusal", "refusal": "no"}]), *CHAT_END).outcome == "filtered"


def generate(*calls: object) -> tuple[Any, ...]:
    parts = [{"functionCall": call} for call in calls]
    return short(decoded("google-generate", {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}))


def test_odd_pieces_of_generate_calls() -> None:
    opened = {"name": "f", "willContinue": True}
    waits = {"partialArgs": [{"jsonPath": "$.a", "willContinue": True}], "willContinue": True}
    empty = {"partialArgs": [{"jsonPath": "$.a"}], "willContinue": True}
    long = {"partialArgs": [{"jsonPath": "$.a", "numberValue": int("9" * 4300)}]}

    assert generate("x")[0] == "malformed"
    assert generate({**opened, "args": {"a": 1}}, {"args": {"b": 1}})[0] == "malformed"
    assert generate(opened, waits, empty, {}) == ("completed", [("f", None, {"a": ""})], [])
    assert generate(opened, long)[2] == [("f", "non_finite")]


def test_a_number_of_too_many_digits_in_a_piece_is_not_finite() -> None:
    piece = b'{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a","numberValue":%s}]}}' % (b"9" * 5000)
    frame = b'data: {"candidates":[{"content":{"parts":[%s]},"finishReason":"STOP"}]}\n\n' % piece

    assert short(decoded("google-generate", frame))[2] == [("f", "non_finite")]


def test_steps_keep_what_is_not_understood() -> None:
    frames: list[Frame] = [
        {"event_type": "step.start", "index": 0, "step": {"type": "thought", "summary": "odd", "content": 5}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "thought_summary", "content": {"text": "hm"}}},
        {"event_type": "step.stop", "index": 0},
        {"event_type": "step.start", "index": 1, "step": {"type": "function_call", "id": "c", "name": "f"}},
        {"event_type": "step.delta", "index": 1, "delta": {"type": "thought_signature", "signature": "s"}},
        {"event_type": "step.stop", "index": 1},
        {"event_type": "new.event"},
        {"event_type": "interaction.completed", "interaction": {"id": "v", "status": "requires_action"}},
    ]
    result = decoded("google-interactions", *frames)

    assert result.calls[0].echo == {"signature": "s"}
    assert result.assistant[0] == {"type": "thought", "summary": [{"text": "hm"}], "content": 5}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("body", "outcome"),
    [(b"", "malformed"), (b"{", "malformed"), (b"[]", "malformed"), (b"5", "malformed"), (b'{"a":"\xff"}', "malformed"),
     (b'[{"error":{"code":1}}]', "failed"), (b'\xef\xbb\xbf{"error":"x"}', "failed"), (b'{"type":"error"}', "failed")],
)  # fmt: skip
def test_bodies_that_are_none(dialect: Dialect, body: bytes, outcome: str) -> None:
    if (body, dialect) == (b"[]", "google-generate"):
        outcome = "truncated"  # an array of chunks, and not one of them

    assert decode_body(body, dialect).outcome == outcome


def test_a_limit_may_be_passed_by_the_very_last_line() -> None:
    decoder = TurnDecoder("anthropic", limits=TurnLimits(calls=0))
    decoder.feed(b'data: {"type":"message_start","message":{"id":"m"}}\n\n')
    decoder.feed(b'data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use"}}')

    assert decoder.eof().limit == "calls"


def test_an_event_name_alone_on_its_line_is_the_empty_name() -> None:
    result = decoded("openai-chat", b"event: error\nevent\n", chat(content="Hi"), *CHAT_END)

    assert result.outcome == "withheld"


def test_a_draft_of_what_is_no_json_has_no_value() -> None:
    assert ArgumentsDraft(0, "x", ["x"], 1).value is None


@pytest.fixture
def _fewer_digits() -> Iterator[None]:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(700)
    yield
    sys.set_int_max_str_digits(before)


@pytest.mark.usefixtures("_fewer_digits")
def test_a_process_that_allows_fewer_digits_refuses_the_call_and_does_not_crash() -> None:
    assert decode_text('{"a":' + "9" * 800 + "}", TurnLimits()).reason == "too_large"


def test_a_server_tool_whose_input_is_cut_goes_back_empty() -> None:
    server = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    opened = {"type": "content_block_start", "index": 0, "content_block": server}
    ended = {"type": "message_delta", "delta": {"stop_reason": "pause_turn"}}
    cut = grown("input_json_delta", partial_json='{"q')
    result = decoded("anthropic", START, opened, cut, ENDED[0], ended, ENDED[2])

    assert result.assistant == (server,)


def test_a_nesting_limit_above_what_the_standard_library_can_do_raises_nothing() -> None:
    deep = '{"a":' * 4000 + "1" + "}" * 4000
    whole = (
        b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"id":"1","name":"f","args":%s}}]},' % deep.encode()
    )
    streams: dict[Dialect, bytes] = {
        "openai-chat": stream(chat(tool_calls=[{"index": 0, "id": "c", "function": {"name": "f", "arguments": deep}}])),
        "google-generate": whole + b'"finishReason":"STOP"}]}\n\n',
    }
    for dialect, data in streams.items():
        decoder = TurnDecoder(dialect, limits=TurnLimits(nesting=5000))
        decoder.feed(data if dialect == "google-generate" else data + stream(*CHAT_END))
        assert len(decoder.eof().calls) == 1
