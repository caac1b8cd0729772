"""Responses items: finals against fragments, the output list against the stream, terminals against each other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stream.feeding import Frame, decoded, short
from toolonce.stream import decode_body

CREATED: Frame = {"type": "response.created", "response": {"id": "r1", "status": "in_progress"}}


def item(call_id: str | None = "c1", arguments: object = "{}", **more: Any) -> Frame:
    base = {"type": "function_call", "call_id": call_id, "name": "f", "arguments": arguments, "status": "completed"}
    return {**base, **more}


def added(index: object, **about: Any) -> Frame:
    opened = {**item(arguments=""), "status": "in_progress", **about}
    return {"type": "response.output_item.added", "output_index": index, "item": opened}


def done(index: object, about: Frame) -> Frame:
    return {"type": "response.output_item.done", "output_index": index, "item": about}


def delta(index: object, text: object) -> Frame:
    return {"type": "response.function_call_arguments.delta", "output_index": index, "delta": text}


def final(index: object, text: str, **more: Any) -> Frame:
    return {"type": "response.function_call_arguments.done", "output_index": index, "arguments": text, **more}


def completed(*output: Frame, kind: str = "completed", status: object = None, **more: Any) -> Frame:
    response = {"id": "r1", "status": status or kind, "output": list(output), **more}
    return {"type": f"response.{kind}", "response": response}


def told(*frames: Frame, **more: Any) -> tuple[Any, ...]:
    return short(decoded("openai-responses", CREATED, *frames, **more))


ONE: tuple[Any, ...] = ("completed", [("f", "c1", {"a": 1})], [])
A1 = '{"a":1}'


def test_a_call_may_be_told_by_its_finished_item_alone() -> None:
    assert told(done(0, item(arguments=A1)), completed()) == ONE


def test_fragments_may_come_before_their_item() -> None:
    assert told(delta(0, A1), added(0), done(0, item(arguments="")), completed()) == ONE


def test_a_final_text_with_a_name_is_a_call_without_any_item() -> None:
    result = decoded("openai-responses", CREATED, final(0, A1, name="f"), completed())

    assert short(result) == ("completed", [("f", None, {"a": 1})], [])
    assert result.assistant == ({"type": "function_call", "call_id": None, "name": "f", "arguments": A1},)


def test_fragments_after_a_final_are_passed_over() -> None:
    assert told(added(0), final(0, A1), delta(0, "junk"), completed()) == ONE


def test_finals_are_compared_text_by_text() -> None:
    assert told(added(0), final(0, A1), done(0, item(arguments='{"a": 1}')), completed())[0] == "malformed"
    assert told(added(0), final(0, ""), done(0, item(arguments=A1)), completed(item(arguments=""))) == ONE


@pytest.mark.parametrize("other", [{"name": "g"}, {"call_id": "c2"}])
def test_a_call_that_changes_its_name_or_id_is_malformed(other: Frame) -> None:
    assert told(added(0), done(0, item(arguments=A1, **other)), completed())[0] == "malformed"


def test_a_listed_call_of_another_kind_under_the_same_id_is_malformed() -> None:
    custom = {"type": "custom_tool_call", "call_id": "c1", "name": "f", "input": "x"}

    assert told(added(0), done(0, item()), completed(custom))[0] == "malformed"


def test_the_output_list_may_leave_out_items_before_a_call() -> None:
    reasoning = {"type": "reasoning", "id": "rs"}
    frames = done(0, reasoning), done(1, item(arguments=A1))

    assert told(*frames, completed(item(arguments=A1))) == ONE
    assert told(done(0, reasoning), done(1, item(None, A1)), completed(item(None, A1)))[1] == [("f", None, {"a": 1})]


def test_equal_ids_are_told_apart_by_their_arguments() -> None:
    first, second = item(arguments=A1), item(arguments='{"a":2}')

    calls = [("f", "c1", {"a": 1}), ("f", "c1", {"a": 2})]
    assert told(done(1, first), done(2, second), completed(second)) == ("completed", calls, [])


def test_a_finished_item_that_is_incomplete_is_withheld() -> None:
    assert told(done(0, item(status="incomplete")), completed())[0] == "withheld"
    assert told(done(0, item(status="in_progress")), completed())[0] == "completed"
    assert told(done(0, item(status="failed")), completed())[0] == "withheld"


@pytest.mark.parametrize("index", [None, "0", 1.0, []])
def test_an_item_without_its_output_index_is_malformed(index: object) -> None:
    assert told(added(index), completed())[0] == "malformed"
    assert told(done(0, item()), delta(index, "x"), completed())[0] == "malformed"


def test_an_announcement_that_comes_again_is_malformed_unless_it_is_a_replay() -> None:
    again = {**added(0), "sequence_number": 4}

    assert told(again, again, done(0, item()), completed())[0] == "completed"
    assert told(again, added(0), done(0, item()), completed())[0] == "malformed"


def test_nothing_may_come_after_the_end() -> None:
    assert told(done(0, item()), completed(), done(1, item("c2")))[0] == "malformed"
    assert told(done(0, item()), completed(), completed())[0] == "malformed"
    assert told(done(0, item()), completed(), {"type": "keepalive"})[0] == "completed"


@pytest.mark.parametrize(
    ("terminal", "outcome"),
    [
        (completed(item(), status="cancelled"), "withheld"),
        ({"type": "response.completed"}, "withheld"),
        (completed(item(), kind="incomplete"), "truncated"),
        (completed(kind="incomplete", incomplete_details={"reason": "content_filter"}), "filtered"),
        (completed(kind="incomplete", incomplete_details={"reason": "steered"}), "truncated"),
        (completed(kind="failed"), "failed"),
        ({"type": "response.failed"}, "failed"),
        (completed(kind="cancelled"), "aborted"),
        (completed(item(), error={"code": "server_error", "message": "m"}), "failed"),
        (completed({"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}), "filtered"),
    ],
)
def test_terminals(terminal: Frame, outcome: str) -> None:
    assert told(done(0, item()), terminal)[0] == outcome
    assert told(done(0, item()), terminal, broken=True)[0] == outcome


def test_a_streamed_refusal_is_filtered() -> None:
    refusal = {"type": "response.refusal.delta", "output_index": 0, "delta": "no"}

    assert told(refusal, done(1, item()), completed())[0] == "filtered"
    assert told(refusal)[0] == "truncated"


def test_a_message_that_was_never_streamed_is_heard_once() -> None:
    message = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi"}]}
    spoken = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hi"}

    assert decoded("openai-responses", CREATED, completed(message)).text == "Hi"
    assert decoded("openai-responses", CREATED, done(0, message), completed(message)).text == "Hi"
    assert decoded("openai-responses", CREATED, spoken, done(0, message), completed(message)).text == "Hi"


def test_a_hosted_tool_never_feeds_a_call() -> None:
    mcp = {"type": "mcp_call", "id": "m", "name": "f", "arguments": "{}"}
    opened = {"type": "response.output_item.added", "output_index": 0, "item": mcp}

    assert told(opened, delta(0, "{}"), done(0, mcp), completed()) == ("completed", [], [])


def test_what_goes_back_is_the_whole_output_with_valid_arguments() -> None:
    reasoning = {"type": "reasoning", "id": "rs", "encrypted_content": "x"}
    broken = item("c2", '{"a":1,}')
    frames = done(0, reasoning), done(1, item(arguments="")), done(2, broken)
    result = decoded("openai-responses", CREATED, *frames, completed())

    assert result.assistant == (reasoning, item(arguments="{}"), {**broken, "arguments": "{}"})


def test_a_call_keeps_what_its_result_must_echo() -> None:
    caller = {"type": "program", "caller_id": "p"}
    result = decoded("openai-responses", CREATED, done(0, item(caller=caller, namespace="n")), completed())

    assert result.calls[0].echo == {"caller": caller, "namespace": "n"}


@pytest.mark.parametrize(
    ("status", "outcome"),
    [("completed", "completed"), ("in_progress", "withheld"), ("queued", "withheld"), ("cancelled", "aborted"),
     ("failed", "failed"), ("incomplete", "truncated"), ("new", "withheld")],
)  # fmt: skip
def test_a_body_is_judged_by_its_status(status: str, outcome: str) -> None:
    body = b'{"id":"r","status":"%s","output":[]}' % status.encode()

    assert decode_body(body, "openai-responses").outcome == outcome
