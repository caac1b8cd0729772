"""The policy on Anthropic's blocks and Google's steps, sentence by sentence: order, ends, contradictions, bodies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.stream.feeding import Frame, in_all_pieces, short, stream
from toolonce.stream import decode_body

MALFORMED: tuple[Any, ...] = ("malformed", [], [])
WITHHELD: tuple[Any, ...] = ("withheld", [], [])
A = {"a": 1}
A1 = '{"a":1}'


def ran(*calls: tuple[str, str | None, Any]) -> tuple[Any, ...]:
    return ("completed", list(calls), [])


START: Frame = {"type": "message_start", "message": {"id": "m1", "content": []}}
STOP: Frame = {"type": "message_stop"}


def block(index: object, kind: str = "tool_use", **more: Any) -> Frame:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **more}}


def grow(index: object, text: object, kind: str = "input_json_delta") -> Frame:
    member = "partial_json" if kind == "input_json_delta" else kind.removesuffix("_delta")
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, member: text}}


def close(index: object) -> Frame:
    return {"type": "content_block_stop", "index": index}


def reason(word: object) -> Frame:
    return {"type": "message_delta", "delta": {"stop_reason": word}}


def tool(index: int, *texts: object, call_id: str | None = "t1", name: str = "f", **more: Any) -> list[Frame]:
    start = block(index, id=call_id, name=name, **{"input": {}, **more})
    return [start, *(grow(index, text) for text in texts), close(index)]


def other(index: int, kind: str, *texts: str) -> list[Frame]:
    return [block(index, kind, id="s", name="f", input={}), *(grow(index, text) for text in texts), close(index)]


END = [reason("tool_use"), STOP]
ONE = ran(("f", "t1", A))


@pytest.mark.parametrize(
    ("frames", "want"),
    [
        ([START, *tool(0, A1), *END], ONE),
        ([START, *tool(0, "", '{"a"', "", ":1}", ""), *END], ONE),
        ([START, *tool(0, "{}", A1), *END], ONE),
        ([START, *tool(0, A), *END], ONE),
        ([START, *tool(0, None), *END], ran(("f", "t1", {}))),
        ([START, *tool(0, input=None), *END], ran(("f", "t1", {}))),
        ([START, *tool(0, input=A), *END], ONE),
        ([START, *tool(0, "", input=A), *END], ONE),
        ([START, *tool(0, "{}", input=A), *END], MALFORMED),
        ([START, *tool(0, A1, call_id=""), *END], ran(("f", None, A))),
        ([START, *tool(0, A1, call_id=None), *tool(1, A1, call_id=None), *END], ran(("f", None, A), ("f", None, A))),
        ([START, *tool(0, A1), *tool(1, '{"a" : 1}'), *END], ONE),
        ([START, *tool(0, A1), *tool(1, A1, name="g"), *END], ran(("f", "t1", A), ("g", "t1", A))),
        ([START, *tool(0, A1, name=""), *END], MALFORMED),
        # indexes count up, blocks may be open side by side
        ([START, block(0, id="t1", name="f"), block(1, id="t2", name="g"), grow(1, "{}"), grow(0, A1), close(1),
          close(0), *END], ran(("f", "t1", A), ("g", "t2", {}))),
        ([START, *tool(0, A1), *tool(2, A1), *END], MALFORMED),
        ([START, *tool(0, A1), *tool(0, A1), *END], MALFORMED),
        ([START, *tool(1, A1), *END], MALFORMED),
        ([START, grow(0, A1), *tool(0), *END], MALFORMED),
        ([START, *tool(0, '{"a"'), grow(0, ":1}"), *END], MALFORMED),
        ([START, *tool(0, A1)[:-1], *END], MALFORMED),
        ([START, *tool(0, A1), block(1, "text", text=""), *END], MALFORMED),
        ([START, *tool(0, A1)[:-1], reason("tool_use"), close(0), STOP], ONE),
        # message_start
        ([START, START, *tool(0, A1), *END], ONE),
        ([START, {"type": "message_start", "message": {"id": "m2"}}, *tool(0, A1), *END], MALFORMED),
        ([START, *tool(0, A1), START, *END], MALFORMED),
        ([*tool(0, A1), *END], MALFORMED),
        # after message_stop
        ([START, *tool(0, A1), *END, *tool(1, A1)], MALFORMED),
        ([START, *tool(0, A1), *END, START], MALFORMED),
        ([START, *tool(0, A1), *END, {"type": "ping"}], ONE),
        # whose call it is
        ([START, *other(0, "server_tool_use", '{"cut'), *tool(1, A1), *END], ONE),
        ([START, *other(0, "mcp_tool_use", "{}"), *END], WITHHELD),
        ([START, *other(0, "tool_use_v2", A1), *other(1, "mcp_tool_result"), *tool(2, A1), *END], ONE),
        # only calls after the last fallback count
        ([START, *tool(0, '{"a'), *other(1, "fallback"), *tool(2, A1), *END], ONE),
        ([START, *tool(0, A1, name=""), *other(1, "fallback"), *tool(2, A1), *END], ONE),
        ([START, *tool(0, A1), *other(1, "fallback"), *tool(2, A1), *other(3, "fallback"), *END], WITHHELD),
        ([START, *tool(0, A1), *other(1, "fallback"), reason("end_turn"), STOP], ran()),
        ([START, *tool(0, A1), *other(1, "fallback"), *tool(2, A1), reason("end_turn"), STOP], WITHHELD),
        # odd deltas
        ([START, block(0, id="t1", name="f"), {**grow(0, A1), "delta": A1}, close(0), *END], MALFORMED),
        ([START, block(0, id="t1", name="f"), {**grow(0, A1), "delta": {"partial_json": A1}}, close(0), *END],
         MALFORMED),
        ([START, block(0, id="t1", name="f"), {**grow(0, A1), "delta": {"type": "new_delta", "x": 1}}, close(0), *END],
         ran(("f", "t1", {}))),
        ([START, *tool(0, A1), {"type": "message_delta", "delta": {}}, *END], ONE),
        # verdicts before one another
        ([START, *tool(0, '{"a'), reason("max_tokens"), STOP], ("truncated", [], [])),
        ([START, *tool(0, '{"a'), reason("end_turn"), STOP], MALFORMED),
        ([START, *tool(0, "[]"), *END], ("completed", [], [("f", "not_an_object")])),
        ([START, *tool(0, "[]"), reason("end_turn"), STOP], WITHHELD),
        ([START, *tool(0, A1), reason("tool_use")], ("truncated", [], [])),
        ([START, *tool(0, A1), STOP], WITHHELD),
        ([START, *tool(0, A1), reason("tool_use"), reason("end_turn"), STOP], WITHHELD),
        ([START, *tool(0, A1), reason("tool_use"), reason("refusal"), STOP], ("filtered", [], [])),
    ],
)  # fmt: skip
def test_anthropic_turns(frames: list[Frame], want: tuple[Any, ...]) -> None:
    assert short(in_all_pieces("anthropic", stream(*frames))) == want


REASONS: list[tuple[object, str, str]] = [
    ("tool_use", "completed", "withheld"), ("end_turn", "withheld", "completed"),
    ("stop_sequence", "withheld", "completed"), ("max_tokens", "truncated", "truncated"),
    ("model_context_window_exceeded", "truncated", "truncated"), ("refusal", "filtered", "filtered"),
    ("pause_turn", "paused", "paused"), ("compaction", "paused", "paused"), (None, "withheld", "withheld"),
    ("", "withheld", "withheld"), ("TOOL_USE", "withheld", "withheld"), ({}, "withheld", "withheld"),
]  # fmt: skip


@pytest.mark.parametrize(("word", "with_a_call", "without"), REASONS)
def test_anthropic_reasons(word: object, with_a_call: str, without: str) -> None:
    said = [block(0, "text", text=""), grow(0, "Hi", "text_delta"), close(0)]
    content: list[Frame] = [{"type": "text", "text": "Hi"}, {"type": "tool_use", "id": "t1", "name": "f", "input": A}]
    for outcome, calls, blocks in ((with_a_call, tool(1, A1), content), (without, [], content[:1])):
        streamed = in_all_pieces("anthropic", stream(START, *said, *calls, reason(word), STOP))
        document = {"id": "m1", "type": "message", "content": blocks, "stop_reason": word}
        whole = decode_body(json.dumps(document).encode(), "anthropic")

        assert (streamed.outcome, streamed.text) == (whole.outcome, whole.text) == (outcome, "Hi")
        assert streamed.calls == whole.calls
        assert streamed.assistant == whole.assistant
        broken = in_all_pieces("anthropic", stream(START, *said, *calls, reason(word)), broken=True)
        assert broken.outcome == "aborted"


@pytest.mark.parametrize(
    ("content", "want"),
    [
        ([{"type": "tool_use", "id": "t1", "name": "f", "input": A1}],
         ("completed", [], [("f", "not_an_object")])),
        ([{"type": "tool_use", "id": "t1", "name": "f"}], ran(("f", "t1", {}))),
        ([{"type": "tool_use", "id": "t1", "input": A}], MALFORMED),
        ([{"type": "server_tool_use", "id": "t1", "name": "f", "input": A}], WITHHELD),
        ([{"type": "tool_use", "id": "t1", "name": "f", "input": A}] * 2, ONE),
        ([None, 5, {}, {"type": "tool_use", "id": "t1", "name": "f", "input": A}], ONE),
        ({"type": "tool_use", "id": "t1", "name": "f", "input": A}, WITHHELD),
        (None, WITHHELD),
    ],
)  # fmt: skip
def test_anthropic_bodies(content: object, want: tuple[Any, ...]) -> None:
    document = {"id": "m1", "type": "message", "content": content, "stop_reason": "tool_use"}

    assert short(decode_body(json.dumps(document).encode(), "anthropic")) == want


def step(index: object, kind: str = "function_call", **more: Any) -> Frame:
    return {"event_type": "step.start", "index": index, "step": {"type": kind, **more}}


def piece(index: object, text: object, kind: str = "arguments_delta") -> Frame:
    member = "arguments" if kind == "arguments_delta" else "text"
    return {"event_type": "step.delta", "index": index, "delta": {"type": kind, member: text}}


def stop(index: object) -> Frame:
    return {"event_type": "step.stop", "index": index}


def steps(index: int, *texts: object, kind: str = "function_call", **more: Any) -> list[Frame]:
    about = {"id": "t1", "name": "f", "arguments": {}, **more}
    return [step(index, kind, **about), *(piece(index, text) for text in texts), stop(index)]


def status(word: object, **more: Any) -> Frame:
    return {"event_type": "interaction.completed", "interaction": {"id": "", "status": word, **more}}


ACTION = status("requires_action")


@pytest.mark.parametrize(
    ("frames", "want"),
    [
        ([*steps(0, '{"a"', ":1}"), ACTION], ONE),
        ([*steps(0, "{}", A1), ACTION], ONE),
        ([*steps(0, arguments=None), ACTION], ran(("f", "t1", {}))),
        ([*steps(0, arguments=A), ACTION], ONE),
        ([*steps(0, "", arguments=A), ACTION], ONE),
        ([*steps(0, A1, arguments=A), ACTION], MALFORMED),
        ([*steps(0, A), ACTION], ONE),
        ([*steps(0, arguments=A1), ACTION], ("completed", [], [("f", "not_an_object")])),
        ([*steps(0, arguments=[]), ACTION], ("completed", [], [("f", "not_an_object")])),
        ([*steps(0, A1, id=""), *steps(1, A1, id=None), ACTION], ran(("f", None, A), ("f", None, A))),
        ([*steps(0, A1), *steps(1, A1), ACTION], ONE),
        ([*steps(0, A1, name=None), ACTION], MALFORMED),
        ([step(4, id="t2", name="g"), step(2, id="t1", name="f"), piece(2, A1), stop(2), piece(4, "{}"), stop(4),
          ACTION], ran(("g", "t2", {}), ("f", "t1", A))),
        ([piece(0, A1), *steps(0), ACTION], MALFORMED),
        ([*steps(0, A1)[:-1], ACTION], MALFORMED),
        ([*steps(0, A1), step(1, "thought"), ACTION], MALFORMED),
        ([*steps(0, A1), *steps(0, A1), ACTION], MALFORMED),
        ([*steps(0, A1), stop(0), ACTION], MALFORMED),
        ([*steps(0, A, kind="google_search_call"), *steps(1, A1), *steps(2, kind="mcp_server_tool_call"), ACTION], ONE),
        ([*steps(0, A1, kind="function_call_v2"), ACTION], WITHHELD),
        ([step(0, id="t1", name="f"), {**piece(0, ""), "delta": A1}, stop(0), ACTION], MALFORMED),
        ([*steps(0, A1), {"event_type": "interaction.status_update", "status": "requires_action"}],
         ("truncated", [], [])),
        ([*steps(0, '{"a'), status("completed")], MALFORMED),
        ([*steps(0, '{"a'), status("incomplete")], ("truncated", [], [])),
        ([*steps(0, A1), ACTION, *steps(1, A1)], MALFORMED),
        ([*steps(0, A1), ACTION, ACTION], MALFORMED),
        ([*steps(0, A1), status("requires_action", error={"message": "m"})], ("failed", [], [])),
        ([*steps(0, A1), {"event_type": "interaction.completed"}], WITHHELD),
    ],
)  # fmt: skip
def test_interactions(frames: list[Frame], want: tuple[Any, ...]) -> None:
    assert short(in_all_pieces("google-interactions", stream(*frames, b"event: done\ndata: [DONE]\n\n"))) == want


@pytest.mark.parametrize(
    ("word", "with_a_call", "without"),
    [
        ("requires_action", "completed", "withheld"), ("completed", "withheld", "completed"),
        ("incomplete", "truncated", "truncated"), ("requires_continuation", "truncated", "truncated"),
        ("budget_exceeded", "truncated", "truncated"), ("failed", "failed", "failed"),
        ("cancelled", "aborted", "aborted"), ("in_progress", "withheld", "withheld"), ("idle", "withheld", "withheld"),
        ("", "withheld", "withheld"), (None, "withheld", "withheld"), (["completed"], "withheld", "withheld"),
    ],
)  # fmt: skip
def test_interaction_statuses(word: object, with_a_call: str, without: str) -> None:
    said = [step(0, "model_output"), piece(0, "Hi", "text"), stop(0)]
    told = {"type": "model_output", "content": [{"type": "text", "text": "Hi"}]}
    asked = {"type": "function_call", "id": "t1", "name": "f", "arguments": A}
    for outcome, calls, listed in ((with_a_call, steps(1, A1), [told, asked]), (without, [], [told])):
        streamed = in_all_pieces("google-interactions", stream(*said, *calls, status(word)))
        whole = decode_body(json.dumps({"id": "v", "status": word, "steps": listed}).encode(), "google-interactions")

        assert (streamed.outcome, streamed.text) == (whole.outcome, whole.text) == (outcome, "Hi")
        assert streamed.assistant == whole.assistant
        assert in_all_pieces("google-interactions", stream(*said, *calls), broken=True).outcome == "aborted"
