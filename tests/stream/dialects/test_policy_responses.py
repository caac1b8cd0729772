"""The policy on OpenAI Responses, sentence by sentence: slots, finals, the union with the output list, terminals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.stream.feeding import Frame, in_all_pieces, short, stream
from toolonce.stream import decode_body

MALFORMED: tuple[Any, ...] = ("malformed", [], [])
A, B = {"a": 1}, {"b": 2}
A1, B2 = '{"a":1}', '{"b":2}'


def call(call_id: str | None = "c1", text: object = A1, name: str | None = "f", **more: Any) -> Frame:
    item = {"type": "function_call", "id": "fc", "call_id": call_id, "name": name, "arguments": text, **more}
    return {key: value for key, value in item.items() if value is not None}


def custom(call_id: str = "k1", text: str = "x", name: str = "p") -> Frame:
    return {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": text, "status": "completed"}


def added(index: object, item: Frame, **more: Any) -> Frame:
    return {"type": "response.output_item.added", "output_index": index, "item": item, **more}


def done(index: object, item: Frame, **more: Any) -> Frame:
    return {"type": "response.output_item.done", "output_index": index, "item": item, **more}


def delta(index: object, text: object, kind: str = "function_call_arguments", **more: Any) -> Frame:
    return {"type": f"response.{kind}.delta", "item_id": "odd", "output_index": index, "delta": text, **more}


def final(index: object, text: object, **more: Any) -> Frame:
    return {"type": "response.function_call_arguments.done", "output_index": index, "arguments": text, **more}


def over(*output: Any, kind: str = "completed", status: object = None, **more: Any) -> Frame:
    return {"type": f"response.{kind}", "response": {"id": "r", "status": status or kind, "output": output, **more}}


def told(*frames: Frame, end: Frame | None = None) -> tuple[Any, ...]:
    return short(in_all_pieces("openai-responses", stream(*frames, end or over())))


def ran(*calls: tuple[str, str | None, Any]) -> tuple[Any, ...]:
    return ("completed", list(calls), [])


OPEN = added(0, call(text=""))
REASONING: Frame = {"type": "reasoning", "id": "rs", "summary": []}
ONE = ran(("f", "c1", A))


@pytest.mark.parametrize(
    ("frames", "want"),
    [
        # slots by output_index, any interleaving, any index
        ([OPEN, added(5, call("c2", "", "g")), delta(5, '{"b"'), delta(0, '{"a"'), delta(5, ":2}"), delta(0, ":1}"),
          done(5, call("c2", B2, "g")), done(0, call())], ran(("f", "c1", A), ("g", "c2", B))),
        ([added(3, call("c2", "", "g")), OPEN, done(0, call()), done(3, call("c2", B2, "g"))],
         ran(("g", "c2", B), ("f", "c1", A))),
        # finals: equal text by text, empty ones aside; they win over fragments
        ([OPEN, delta(0, '{"a":9'), final(0, A1), delta(0, "}"), done(0, call())], ONE),
        ([OPEN, delta(0, A1), final(0, ""), done(0, call(text=""))], ONE),
        ([OPEN, final(0, ""), delta(0, A1), done(0, call(text=""))], ONE),
        ([OPEN, final(0, A1), done(0, call(text=""))], ONE),
        ([OPEN, final(0, ""), done(0, call())], ONE),
        ([OPEN, final(0, A1), done(0, call(text=A1 + " "))], MALFORMED),
        ([OPEN, final(0, A1), final(0, B2), done(0, call())], MALFORMED),
        ([OPEN, final(0, A1, name="g"), done(0, call())], MALFORMED),
        ([OPEN, final(0, A1, name="f"), done(0, call(name=None))], ONE),
        ([OPEN, delta(0, '{"a":'), final(0, '{"a":')], MALFORMED),
        ([OPEN, delta(0, A1)], MALFORMED),
        ([OPEN, done(0, call(text=None))], ran(("f", "c1", {}))),
        ([added(0, call()), done(0, call(text=""))], ONE),
        ([added(0, call(name=None)), done(0, call(name=None))], MALFORMED),
        ([OPEN, done(0, call(text=A1 + B2))], MALFORMED),
        ([OPEN, done(0, call(text="  "))], MALFORMED),
        ([OPEN, done(0, call(text="nope")), done(1, call("c2", B2, "g"))],
         ("completed", [("g", "c2", B)], [("f", "invalid_json")])),
        # announcements
        ([OPEN, OPEN, done(0, call())], MALFORMED),
        ([added(0, REASONING), added(0, REASONING), done(1, call())], MALFORMED),
        ([OPEN, added(0, REASONING), done(0, call())], MALFORMED),
        ([added(0, call("c2", "")), done(0, call())], MALFORMED),
        # statuses of whole calls
        ([OPEN, done(0, call(status="incomplete"))], ("withheld", [], [])),
        ([OPEN, done(0, call(text='{"a', status="incomplete"))], MALFORMED),
        ([OPEN, done(0, call(status="in_progress"))], ONE),
        ([OPEN, done(0, call(status="cancelled"))], ("withheld", [], [])),
        ([added(0, call(text="", status="incomplete")), done(0, call(status="completed"))], ONE),
        # what is not ours, by its type tag alone
        ([added(0, {**call(), "type": "mcp_call"}), delta(0, "{"), final(0, "{"), done(1, call())], ONE),
        ([delta(4, "{", "mcp_call_arguments"), delta(4, "rm", "shell_call_command"), done(1, call())], ONE),
        ([done(0, {**call(), "type": "shell_call"}), done(1, {**call(), "type": "computer_call"})], ran()),
        ([done(0, {**call(), "type": "function_call_output"}), done(1, {**call(), "type": "new_call"})], ran()),
        # custom tools: free text
        ([added(0, custom(text="")), delta(0, '{"', "custom_tool_call_input"), done(0, custom(text='{"'))],
         ran(("p", "k1", '{"'))),
        ([done(0, custom(text=""))], ran(("p", "k1", ""))),
        ([added(0, custom(text="")), delta(0, "{}"), done(0, custom())], MALFORMED),
        # one event that came twice, and what only looks like it
        ([done(0, call()), done(1, call(text='{ "a": 1 }'))], ONE),
        ([done(0, call()), done(1, call(name="g"))], ran(("f", "c1", A), ("g", "c1", A))),
        ([done(0, call(None)), done(1, call(None))], ran(("f", None, A), ("f", None, A))),
        ([done(0, call("")), done(1, call(""))], ran(("f", None, A), ("f", None, A))),
        ([done(0, call()), done(0, call())], ONE),
    ],
)  # fmt: skip
def test_streamed_calls(frames: list[Frame], want: tuple[Any, ...]) -> None:
    assert told(*frames) == want


@pytest.mark.parametrize(
    ("frames", "output", "want"),
    [
        ([done(0, call())], [call("c2", B2, "g")], ran(("f", "c1", A), ("g", "c2", B))),
        ([OPEN, delta(0, A1)], [call()], ONE),
        ([OPEN, delta(0, '{"lost')], [call()], ONE),
        ([OPEN], [call("c2", B2, "g")], MALFORMED),
        ([done(0, REASONING), done(1, call())], [call()], ONE),
        ([done(0, call()), done(1, call("c2", B2, "g"))], [call("c2", B2, "g"), call()],
         ran(("f", "c1", A), ("g", "c2", B))),
        ([done(0, call())], [call(text="")], ONE),
        ([done(0, call(text=""))], [call()], ONE),
        ([done(0, call())], [call(text=B2)], MALFORMED),
        ([done(0, call())], [call(name="g")], MALFORMED),
        ([done(0, call())], [call(status="incomplete")], ("withheld", [], [])),
        ([done(0, call())], [custom("c1")], MALFORMED),
        ([done(0, call())], [None, "x", 5, {}, {"type": None}, call()], ONE),
        # an id that is missing on one side: by place, never twice
        ([done(0, call(None))], [call()], ONE),
        ([done(0, call())], [call(None)], ONE),
        ([done(0, REASONING), done(1, call())], [call(None)], MALFORMED),
        ([done(0, REASONING), done(1, call(None))], [call()], MALFORMED),
        ([done(0, REASONING), done(1, call(None))], [call(None)], ran(("f", None, A))),
        ([done(0, call())], [call(), call("c1", B2)], ran(("f", "c1", A), ("f", "c1", B))),
        ([], [call(None), call(None)], ran(("f", None, A), ("f", None, A))),
    ],
)  # fmt: skip
def test_the_union_with_the_output_list(frames: list[Frame], output: list[Any], want: tuple[Any, ...]) -> None:
    assert told(*frames, end=over(*output)) == want


def test_sequence_numbers_seen_before_are_replays_and_may_jump() -> None:
    frames = [{**frame, "sequence_number": number} for number, frame in ((0, OPEN), (4, delta(0, '{"a"')))]
    last = [{**delta(0, ":1}"), "sequence_number": 900}, {**done(0, call(text="")), "sequence_number": 7}]
    end = {**over(), "sequence_number": 901}
    error = {"type": "error", "code": "x", "message": "m", "sequence_number": 4}

    assert told(*frames, *frames, *last, *frames, end=end) == ONE
    assert told(*frames, *last, *last, end, end=end) == ONE
    assert told(*frames, *last, {**delta(0, "junk"), "sequence_number": 4}, end=end) == ONE
    assert told(*frames, *last, error, end=end)[0] == "failed"
    assert told(*frames, *last, end={**end, "sequence_number": 4})[0] == "truncated"


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (over(), "completed"), (over(status="in_progress"), "withheld"), (over(status="failed"), "withheld"),
        (over(incomplete_details={"reason": "max_output_tokens"}), "withheld"),
        (over(incomplete_details={"reason": None}), "completed"), (over(incomplete_details=None), "completed"),
        (over(kind="incomplete", incomplete_details={"reason": "content_filter"}), "filtered"),
        (over(kind="incomplete", incomplete_details={"reason": "max_messages"}), "truncated"),
        (over(kind="incomplete", incomplete_details="max"), "truncated"),
        (over(kind="incomplete", status="completed"), "truncated"), (over(kind="failed", status="completed"), "failed"),
        (over(kind="cancelled"), "aborted"), (over(kind="done"), "truncated"), (over(kind="expired"), "truncated"),
        (over(error={"code": "c", "message": "m"}), "failed"), (over(error=None), "completed"),
        (over({"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}), "filtered"),
        (over({"type": "message", "content": "no list"}), "completed"),
        ({"type": "response.completed", "response": None}, "withheld"),
        ({"type": "response.in_progress", "response": {"error": {"code": "c"}}}, "failed"),
    ],
)  # fmt: skip
def test_terminals(end: Frame, outcome: str) -> None:
    whole = done(0, call())

    assert told(whole, end=end) == (outcome, [("f", "c1", A)] if outcome == "completed" else [], [])
    assert told(end=end)[0] == outcome
    broken = in_all_pieces("openai-responses", stream(whole, end) + b"data: {", broken=True)
    assert broken.outcome == ("aborted" if outcome == "truncated" and "incomplete" not in end["type"] else outcome)


@pytest.mark.parametrize("late", [delta(0, "x"), done(1, call("c2")), over(), final(0, ""), added(9, REASONING)])
def test_more_content_after_the_end_voids_the_turn(late: Frame) -> None:
    assert told(done(0, call()), over(), end=late) == MALFORMED


def test_refusals_and_texts() -> None:
    place = {"output_index": 0, "content_index": 0}
    part = {"type": "response.content_part.done", **place, "part": {"type": "refusal", "refusal": "no"}}
    said = {"type": "response.output_text.delta", **place, "delta": "Hi"}
    thought = {"type": "response.reasoning_text.delta", **place, "delta": "hm"}

    assert told(part, done(1, call()))[0] == "filtered"
    assert in_all_pieces("openai-responses", stream(thought, said, part, over())).text == "Hi"


@pytest.mark.parametrize(
    ("document", "want"),
    [
        ({"status": "completed", "output": [call(), call()]}, ONE),
        ({"status": "completed", "output": [call(), call(text=B2), custom()]},
         ran(("f", "c1", A), ("f", "c1", B), ("p", "k1", "x"))),
        ({"status": "completed", "output": [call(text='{"a')]}, MALFORMED),
        ({"status": "completed", "output": [call(status="incomplete")]}, ("withheld", [], [])),
        ({"status": "completed", "output": {"0": call()}}, ran()),
        ({"status": "incomplete", "output": [call()], "incomplete_details": {"reason": "content_filter"}},
         ("filtered", [], [])),
        ({"status": "completed", "output": [call()], "error": {"code": "c"}}, ("failed", [], [])),
        ({"status": "completed", "output": [call()], "error": None}, ONE),
        ({"output": [call()]}, ("withheld", [], [])),
        ({"status": "queued", "output": []}, ("withheld", [], [])),
        ({}, ("withheld", [], [])),
    ],
)  # fmt: skip
def test_bodies(document: Frame, want: tuple[Any, ...]) -> None:
    assert short(decode_body(json.dumps(document).encode(), "openai-responses")) == want
