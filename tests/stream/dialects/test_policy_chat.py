"""The policy on OpenAI Chat, sentence by sentence: which entry belongs to which call, and which ends run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.stream.feeding import Frame, in_all_pieces, short, stream
from toolonce.stream import TurnDecoder, decode_body

DONE = b"data: [DONE]\n\n"
MALFORMED: tuple[Any, ...] = ("malformed", [], [])


def chunk(finish: object = None, /, **delta: Any) -> Frame:
    return {"id": "cc", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def e(index: object = None, call_id: object = None, name: object = None, text: object = None, **more: Any) -> Frame:
    """One entry of ``tool_calls``; what is None is left out."""
    about = {key: value for key, value in (("name", name), ("arguments", text)) if value is not None}
    one = {"index": index, "id": call_id, "function": about}
    return {**{key: value for key, value in one.items() if value is not None}, **more}


def told(*entries: Frame | list[Frame], finish: object = "tool_calls") -> tuple[Any, ...]:
    """The answer to a turn of these entries, one chunk each; a list is one chunk of several."""
    chunks = [chunk(tool_calls=entry if isinstance(entry, list) else [entry]) for entry in entries]
    return short(in_all_pieces("openai-chat", stream(*chunks, chunk(finish), DONE)))


def ran(*calls: tuple[str, str | None, Any]) -> tuple[Any, ...]:
    return ("completed", list(calls), [])


A, B = {"a": 1}, {"b": 2}
A1, B2 = '{"a":1}', '{"b":2}'
X = e(0, "c1", "f", A1)


@pytest.mark.parametrize(
    ("entries", "want"),
    [
        # another id together with a name opens a new call
        ([X, e(0, "c2", "f", A1)], ran(("f", "c1", A), ("f", "c2", A))),
        ([X, e(0, "c2", "g", '{"b"'), e(0, None, None, ":2}")], ran(("f", "c1", A), ("g", "c2", B))),
        ([e(0, "c1", "f"), e(0, "c2", "g"), e(0, "c2", None, B2)], ran(("f", "c1", {}), ("g", "c2", B))),
        ([X, e(1, "c2", "g", "{"), e(0, "c3", "h", A1), e(1, None, None, "}")],
         ran(("f", "c1", A), ("g", "c2", {}), ("h", "c3", A))),
        # another id without a name goes on, and the first id stays
        ([e(0, "c1", "f", '{"a"'), e(0, "c9", "", ":1}")], ran(("f", "c1", A))),
        ([e(0, "c1", "f", '{"a"'), e(0, "c9", None, ":"), e(0, "c8", None, "1}")], ran(("f", "c1", A))),
        # absent ids
        ([e(0, "c1", "f", '{"a"'), e(0, "", "f", ":"), e(0, "null", "g", "")], MALFORMED),
        ([e(0, "c1", "f", '{"a"'), e(0, "  ", "f", ":1}")], ran(("f", "c1", A))),
        ([e(0, "null", "f", A1), e(1, "null", "f", A1)], ran(("f", None, A), ("f", None, A))),
        ([e(0, "", "f", '{"a"'), e(0, "c1", None, ":1}")], ran(("f", "c1", A))),
        ([e(0, None, "get_"), e(0, "c1", "city", A1)], ran(("get_city", "c1", A))),
        # an equal id or name is a repeat; a further piece of a name is appended; a first name may come late
        ([e(0, "c1", "f"), e(0, "c1", "f", A1)], ran(("f", "c1", A))),
        ([e(0, "c1", "ge"), e(0, "c1", "t_"), e(0, None, "it", A1)], ran(("get_it", "c1", A))),
        ([e(0, "c1", None, '{"a"'), e(0, None, None, ":1}"), e(0, None, "f")], ran(("f", "c1", A))),
        ([e(0, "c1", "f", '{"a"'), e(0, None, "g", ":1}")], MALFORMED),
        ([e(0, "c1", None, A1)], MALFORMED),
        ([e(0, "c1", "", A1), e(1, "c2", "g", B2)], MALFORMED),
        # indexes: any start, gaps, any order, digits
        ([e(7, "c1", "f", "{"), e(-1, "c2", "g", B2), e("7", None, None, "}")], ran(("f", "c1", {}), ("g", "c2", B))),
        ([e(0, "c1", "f", '{"a"'), e(3, None, None, ":1}")], ran(("f", "c1", A))),
        ([e(0, "c1", "f", '{"a"'), e(1, None, None, ":1}"), e(1, "c2", "g", B2)], ran(("f", "c1", A), ("g", "c2", B))),
        ([e(0, "c1", "f", "{"), e(1, "c2"), e(1, None, "g", "{}"), e(0, None, None, "}")],
         ran(("f", "c1", {}), ("g", "c2", {}))),
        ([X, e(1, "c2", "g", "{"), e(2, None, None, "}")], MALFORMED),
        ([e(0, None, None, '{"a"'), e(0, None, "f", ":1}")], ran(("f", None, A))),
        # without an index: by id, else a name opens, else the call opened last
        ([e(None, "c1", "f", "{"), e(None, "c2", "g", "{"), e(None, "c1", "f", "}"), e(None, "c9", None, "}")],
         ran(("f", "c1", {}), ("g", "c2", {}))),
        ([e(None, None, "f", A1), e(None, None, "f", A1)], ran(("f", None, A), ("f", None, A))),
        ([e(None, None, "f", "{"), e(None, None, None, "}")], ran(("f", None, {}))),
        ([e(None, None, "f", "{"), e(None, None, "f", "}")], MALFORMED),
        # several entries for one index in one chunk
        ([[e(0, "c1", "f", '{"a"'), e(0, None, None, ":1}"), e(0, "c2", "g", B2)]],
         ran(("f", "c1", A), ("g", "c2", B))),
        # types
        ([e(0, "c1", "f", A1, type="")], ran(("f", "c1", A))),
        ([{"index": 0, "id": "c1", "custom": {"name": "p", "input": '{"'}}], ran(("p", "c1", '{"'))),
        ([{"index": 0, "id": "c1", "type": "", "custom": {"name": "p", "input": "{}"}},
          {"index": 0, "custom": {"input": "x"}}], ran(("p", "c1", "{}x"))),
        ([{"index": 0, "id": "c1", "type": "custom", "custom": {"name": "p"}}], ran(("p", "c1", ""))),
        ([X, e(1, "s1", "f", A1, type="builtin_function")], ran(("f", "c1", A))),
        ([X, e(1, "s1", "f", A1, type="mcp"), e(1, "s1", None, '{"cut')], ran(("f", "c1", A))),
        ([{"index": 0, "id": "c1", "type": "function", "custom": {"name": "p", "input": "x"}}], MALFORMED),
        ([e(0, "c1", "f"), {"index": 0, "function": A1}], MALFORMED),
        # equal ids: two calls unless all is equal
        ([X, e(1, "c1", "f", '{ "a" : 1 }')], ran(("f", "c1", A))),
        ([X, e(1, "c1", "g", A1)], ran(("f", "c1", A), ("g", "c1", A))),
        ([X, e(1, "c1", "f", B2)], ran(("f", "c1", A), ("f", "c1", B))),
        ([X, e(1, "c1", "f", '{"a":1.0}')], ran(("f", "c1", A), ("f", "c1", {"a": 1.0}))),
        # two objects in one slot, cut texts, placeholders
        ([X, X], MALFORMED),
        ([X, e(1, "c2", "g", '{"b":[1,')], MALFORMED),
        ([X, e(1, "c2", "g", " \n")], MALFORMED),
        ([e(0, "c1", "f", "{}"), e(0, None, None, '{"a"'), e(0, None, None, ":1}")], ran(("f", "c1", A))),
        ([e(0, "c1", "f", {}), e(0, None, None, "")], ran(("f", "c1", {}))),
        ([e(0, "c1", "f", "{} "), e(0, None, None, A1)], MALFORMED),
        ([e(0, "c1", "f", ""), e(0, None, None, "{}"), e(0, None, None, A1)], ran(("f", "c1", A))),
        ([e(0, "c1", "f", A1), e(0, None, None, "{}")], MALFORMED),
        ([e(0, "c1", "f", '{"a":1'), e(0, None, None, {"b": 2})], MALFORMED),
        ([e(0, "c1", "f", '{"t":"\ud83d'), e(0, None, None, '\ude00"}')], ran(("f", "c1", {"t": "\U0001f600"}))),
    ],
)  # fmt: skip
def test_which_entry_belongs_to_which_call(entries: list[Any], want: tuple[Any, ...]) -> None:
    assert told(*entries) == want


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('"{}"', "not_an_object"), ("[]", "not_an_object"), ("{'a':1}", "invalid_json"),
        ('{"a":1}]', "invalid_json"), ("{}[", "invalid_json"), ("```json\n{}\n```", "invalid_json"),
        ('{"x":{"a":1,"a":1}}', "duplicate_key"), ('{"a":-1e400}', "non_finite"), ('{"a":"\\udc00"}', "lone_surrogate"),
        ('{"a":' + "[" * 100 + "]" * 100 + "}", "too_deep"), ('{"a":' + "7" * 4301 + "}", "too_large"),
    ],
)  # fmt: skip
def test_a_bad_text_spoils_its_own_call_alone(text: str, reason: str) -> None:
    want = ("completed", [("f", "c1", A)], [("g", reason)])

    assert told(X, e(1, "c2", "g", text)) == want
    assert told(X, e(1, "c2", "g", text), e(1, None, None, "")) == want
    assert told(X, e(1, "c2", "g", text), finish="length")[0] == "truncated"


def ended(*finishes: object, calls: bool = True, done: bool = True, **delta: Any) -> str:
    frames = [chunk(content="Hi", **delta), *([chunk(tool_calls=[X])] if calls else [])]
    return in_all_pieces(
        "openai-chat", stream(*frames, *(chunk(finish) for finish in finishes), *([DONE] if done else []))
    ).outcome


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize(
    ("finishes", "with_a_call", "without"),
    [
        (["tool_calls"], "completed", "withheld"), (["function_call"], "completed", "withheld"),
        (["stop"], "completed", "completed"), (["length"], "truncated", "truncated"),
        (["max_tokens"], "truncated", "truncated"), (["model_context_window_exceeded"], "truncated", "truncated"),
        (["content_filter"], "filtered", "filtered"), (["sensitive"], "filtered", "filtered"),
        (["refusal"], "filtered", "filtered"), (["error"], "failed", "failed"),
        (["network_error"], "failed", "failed"), (["insufficient_system_resource"], "failed", "failed"),
        (["abort"], "aborted", "aborted"), (["cancel"], "aborted", "aborted"),
        (["tool_use"], "withheld", "withheld"), (["STOP"], "withheld", "withheld"), ([" "], "withheld", "withheld"),
        ([0], "withheld", "withheld"), ([{}], "withheld", "withheld"), (["", None, "stop"], "completed", "completed"),
        (["stop", "tool_calls"], "completed", "withheld"), (["stop", "length"], "truncated", "truncated"),
        (["eos", "tool_calls"], "completed", "withheld"), (["eos_token"], "completed", "completed"),
        (["model_length"], "truncated", "truncated"), (["tool_calls", "abort"], "aborted", "aborted"),
    ],
)  # fmt: skip
def test_finish_reasons(finishes: list[object], with_a_call: str, without: str, done: bool) -> None:
    assert ended(*finishes, done=done) == with_a_call
    assert ended(*finishes, calls=False, done=done) == without


def test_done_without_a_finish_reason() -> None:
    assert (ended(), ended(calls=False)) == ("truncated", "completed")
    assert (ended(None, "", done=False), ended(calls=False, done=False)) == ("truncated", "truncated")
    assert ended(calls=False, tool_calls=[{"index": 0}]) == "truncated"
    assert ended(calls=False, tool_calls=None, function_call=None) == "completed"
    assert ended(calls=False, refusal="no") == "filtered"
    assert ended("tool_calls", refusal="") == "completed"


def test_only_choice_0_counts() -> None:
    other = {"index": 1, "delta": {"content": "x", "tool_calls": [e(0, "d1", "g", B2)]}, "finish_reason": "length"}
    both = {"choices": [other, chunk("tool_calls", content="Hi", tool_calls=[X])["choices"][0]]}
    lone = {"choices": [{**other, "index": 2, "finish_reason": "error"}]}
    result = in_all_pieces("openai-chat", stream({"choices": [other]}, both, lone, DONE))

    assert (short(result), result.text) == (ran(("f", "c1", A)), "Hi")
    assert in_all_pieces("openai-chat", stream({"choices": [other]})).outcome == "truncated"


def test_an_error_inside_the_choice_that_counts_fails_the_turn() -> None:
    error = {"index": 0, "delta": {}, "error": {"code": 502, "message": "busy"}, "finish_reason": "stop"}

    assert in_all_pieces("openai-chat", stream(chunk(tool_calls=[X]), {"choices": [error]}, DONE)).outcome == "failed"


def test_what_may_follow_the_finish_reason_and_what_may_not_follow_done() -> None:
    more, usage = chunk(tool_calls=[e(0, None, None, ":1}")]), {"choices": [], "usage": {"completion_tokens": 3}}
    start = stream(chunk(tool_calls=[e(0, "c1", "f", '{"a"')]), chunk("tool_calls"), more, usage)

    assert short(in_all_pieces("openai-chat", start + stream(chunk("tool_calls"), DONE))) == ran(("f", "c1", A))
    assert short(in_all_pieces("openai-chat", start + stream(DONE, usage, DONE))) == ran(("f", "c1", A))
    for late in (chunk(content="x"), chunk(tool_calls=[X]), chunk("stop"), chunk(function_call={"name": "f"})):
        assert short(in_all_pieces("openai-chat", start + stream(DONE, late))) == MALFORMED
    assert in_all_pieces("openai-chat", start, broken=True).outcome == "aborted"
    assert short(in_all_pieces("openai-chat", start + DONE + b'data: {"x', broken=True)) == ran(("f", "c1", A))


@pytest.mark.parametrize("lacking", [e(0, "c1", "f"), e(0, "c1", "f", ""), e(0, "c1", "f", None, type="function")])
@pytest.mark.parametrize("others", [[], [e(1, "c2", "g", B2)]])
def test_a_stream_without_done_is_truncated_where_a_call_never_got_argument_text(
    lacking: Frame, others: list[Frame]
) -> None:
    """Faults 27: a clean cut between the finish reason and the arguments that some servers send after it."""
    start = stream(chunk(tool_calls=[lacking, *others]), chunk("tool_calls"))
    late = stream(chunk(tool_calls=[e(0, None, None, A1)]))
    rest = [("g", "c2", B)] if others else []

    cut = in_all_pieces("openai-chat", start)
    assert (cut.outcome, cut.calls, cut.stop) == ("truncated", (), None)
    assert short(in_all_pieces("openai-chat", start + late)) == ran(("f", "c1", A), *rest)
    assert short(in_all_pieces("openai-chat", start + DONE)) == ran(("f", "c1", {}), *rest)
    empty = stream(chunk(tool_calls=[e(0, None, None, "{}")]))
    assert short(in_all_pieces("openai-chat", start + empty)) == ran(("f", "c1", {}), *rest)


def test_other_kinds_of_calls_without_text_and_done_are_truncated_as_well_and_bodies_are_not() -> None:
    """Faults 27."""
    custom = {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "f", "input": ""}}
    for delta in ({"tool_calls": [custom]}, {"function_call": {"name": "f", "arguments": ""}}):
        assert in_all_pieces("openai-chat", stream(chunk(**delta), chunk("stop"))).outcome == "truncated"
    message = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": ""}}]}
    body = {"id": "cc", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}

    assert short(decode_body(json.dumps(body).encode(), "openai-chat")) == ran(("f", "c1", {}))


def test_the_old_form() -> None:
    parts: list[Frame] = [{"name": "f", "arguments": ""}, {"arguments": '{"a"'}, {"arguments": ":1}"}]
    frames = [chunk(function_call=part) for part in parts]

    for finish in ("function_call", "stop"):
        assert short(in_all_pieces("openai-chat", stream(*frames, chunk(finish), DONE))) == ran(("f", None, A))
    assert short(in_all_pieces("openai-chat", stream(*frames[:2], chunk("function_call"), DONE))) == MALFORMED


@pytest.mark.parametrize("used", [9, 10, 11])
def test_a_turn_that_used_up_its_tokens_is_truncated_where_the_harness_asks_for_that(used: int) -> None:
    body = stream(
        chunk(tool_calls=[X]), chunk("tool_calls"), {"choices": [], "usage": {"completion_tokens": used}}, DONE
    )
    guarded, plain = TurnDecoder("openai-chat", max_tokens=10), TurnDecoder("openai-chat")
    guarded.feed(body)
    plain.feed(body)

    assert guarded.eof().outcome == ("completed" if used < 10 else "truncated")
    assert plain.eof().outcome == "completed"


def body(message: object, finish: object = "tool_calls", **more: Any) -> tuple[Any, ...]:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return short(decode_body(json.dumps({"id": "cc", "choices": [choice], **more}).encode(), "openai-chat"))


@pytest.mark.parametrize(
    ("message", "finish", "want"),
    [
        ({"tool_calls": [e(None, "c1", "f", A1), e(None, "c1", "f", A1)]}, "stop", ran(("f", "c1", A))),
        ({"tool_calls": [e(None, None, "f", A1), e(None, None, "f", A1)]}, "stop", ran(("f", None, A), ("f", None, A))),
        ({"tool_calls": [e(0, "c1", "f", A1), e(0, "c2", "f", B2)]}, "tool_calls", ran(("f", "c1", A), ("f", "c2", B))),
        ({"tool_calls": [e(None, "c1", "f", A)]}, "tool_calls", ran(("f", "c1", A))),
        ({"tool_calls": [e(None, "c1", "f", '{"a"')]}, "tool_calls", MALFORMED),
        ({"tool_calls": [e(None, "c1", None, A1)]}, "tool_calls", MALFORMED),
        ({"tool_calls": [5]}, "tool_calls", MALFORMED),
        ({"tool_calls": {"0": e(None, "c1", "f", A1)}}, "tool_calls", MALFORMED),
        ({"function_call": {"name": "f", "arguments": A1}}, "function_call", ran(("f", None, A))),
        ({"tool_calls": [X], "refusal": "no"}, "tool_calls", ("filtered", [], [])),
        ({"tool_calls": None, "function_call": None}, "tool_calls", ("withheld", [], [])),
        ({"tool_calls": [X]}, None, ("truncated", [], [])),
        ({"tool_calls": [X]}, "eos", ("completed", [("f", "c1", A)], [])),
        ({"tool_calls": [X]}, "eof", ("withheld", [], [])),
        (None, "stop", ("completed", [], [])),
        ("words", "tool_calls", ("withheld", [], [])),
    ],
)
def test_bodies(message: object, finish: object, want: tuple[Any, ...]) -> None:
    assert body(message, finish) == want
    assert body(message, finish, error={"code": 1})[0] == "failed"


def test_a_turn_that_says_nothing_leaves_no_message_behind() -> None:
    silent = stream(chunk(content=""), chunk("stop"), DONE)
    thought = stream(chunk(reasoning_content="hm"), chunk("stop"), DONE)

    assert in_all_pieces("openai-chat", silent).assistant == ()
    assert in_all_pieces("openai-chat", thought).assistant == (
        {"role": "assistant", "content": "", "reasoning_content": "hm"},
    )


def test_bodies_without_a_choice_that_counts() -> None:
    for odd in ("{}", '{"choices":[]}', '{"choices":null}', '{"choices":[{"index":1,"finish_reason":"stop"}]}'):
        assert decode_body(odd.encode(), "openai-chat").outcome == "truncated"
    assert decode_body(b'{"choices":[{"finish_reason":"length","finish_reason":"stop"}]}', "openai-chat").outcome == (
        "malformed"
    )
    assert decode_body(b'{"error":{"message":"\xff"}}', "openai-chat").outcome == "failed"
