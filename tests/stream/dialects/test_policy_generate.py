"""The policy on generateContent, sentence by sentence: parts, finish reasons, arguments in pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.stream.feeding import Frame, in_all_pieces, short, stream
from toolonce.stream import decode_body

MALFORMED: tuple[Any, ...] = ("malformed", [], [])
A = {"a": 1}


def ran(*calls: tuple[str, str | None, Any]) -> tuple[Any, ...]:
    return ("completed", list(calls), [])


def chunk(*parts: Any, finish: object = None, **more: Any) -> Frame:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}
    return {"responseId": "r", "candidates": [{**candidate, **more}]}


def call(name: str | None = "f", **more: Any) -> Frame:
    return {"functionCall": {**({} if name is None else {"name": name}), **more}}


def more(*pieces: Any, last: bool = False, **about: Any) -> Frame:
    return call(None, partialArgs=list(pieces), **({} if last else {"willContinue": True}), **about)


def piece(path: str, on: bool = False, **value: Any) -> Frame:
    return {"jsonPath": path, **value, **({"willContinue": True} if on else {})}


def text(path: str, value: str, on: bool = False) -> Frame:
    return piece(path, on, stringValue=value)


OPEN = call(willContinue=True)
END: Frame = {"functionCall": {}}
STOP = chunk(finish="STOP")


def told(*parts: Any, end: Frame = STOP) -> tuple[Any, ...]:
    return short(in_all_pieces("google-generate", stream(*(chunk(part) for part in parts), end)))


@pytest.mark.parametrize(
    ("parts", "want"),
    [
        ([call(args=A), call(args=A)], ran(("f", None, A), ("f", None, A))),
        ([call(args=A, id="1"), call(args=A, id="1")], ran(("f", "1", A))),
        ([call(args=A, id="1"), call(args={"a": 1.0}, id="1")], ran(("f", "1", A), ("f", "1", {"a": 1.0}))),
        ([call(args=A, id=""), call("g", id=None)], ran(("f", None, A), ("g", None, {}))),
        ([call(args=None)], ran(("f", None, {}))),
        ([call(None, args=A)], MALFORMED),
        ([call("", args=A)], MALFORMED),
        ([call(args=[1])], ("completed", [], [("f", "not_an_object")])),
        ([call(args='{"a":1}'), call("g", args=A)], ("completed", [("g", None, A)], [("f", "not_an_object")])),
        ([call(args={"a": "\ud800"})], ("completed", [], [("f", "lone_surrogate")])),
        ([{"functionCall": None, "text": "x"}, call(args=A)], ran(("f", None, A))),
        ([{"functionCall": [1]}], MALFORMED),
        ([{"thoughtSignature": "s"}, {"text": "", "thoughtSignature": "s"}], ran()),
        ([{"executableCode": {"name": "f", "args": A}}, {"toolCall": {"name": "f", "args": A}}], ran()),
        ([{"functionResponse": {"name": "f"}}, {"newPart": {}}, call(args=A)], ran(("f", None, A))),
        # pieces by path
        ([OPEN, more(text("$.a", "x", True)), more(text("$.a", "y", True)), more(text("$.a", "z")), END],
         ran(("f", None, {"a": "xyz"}))),
        ([OPEN, more(text("$.a", "\ud83d", True)), more(text("$.a", "\ude00"), last=True)],
         ran(("f", None, {"a": "\U0001f600"}))),
        ([OPEN, more(text("$.a", "x", True), text("$.b", "y"), text("$.a", "z")), END],
         ran(("f", None, {"a": "xz", "b": "y"}))),
        ([OPEN, more(text('$["a.b"][0]["c"]', "x"), text("$['a.b'][1]", "y")), END],
         ran(("f", None, {"a.b": [{"c": "x"}, "y"]}))),
        ([OPEN, more(text("$ .a ['b'] [ 0 ]", "x")), END], ran(("f", None, {"a": {"b": ["x"]}}))),
        ([OPEN, more(text("$['it\\'s']", "x"), text('$["\\ud83d\\ude00"]', "y"), text("$.\u00e9", "z")), END],
         ran(("f", None, {"it's": "x", "\U0001f600": "y", "\u00e9": "z"}))),
        ([OPEN, more(text("$['']", "x"), text("$['0']", "y")), END], ran(("f", None, {"": "x", "0": "y"}))),
        # positions in any order, without gaps
        ([OPEN, more(text("$.a[2]", "z"), text("$.a[0]", "x"), text("$.a[1]", "y")), END],
         ran(("f", None, {"a": ["x", "y", "z"]}))),
        ([OPEN, more(text("$.a[1][0].b", "y"), text("$.a[0][1]", "x"), text("$.a[0][0]", "w")), END],
         ran(("f", None, {"a": [["w", "x"], [{"b": "y"}]]}))),
        ([OPEN, more(text("$.a[0]", "x"), text("$.a[2]", "z")), END], MALFORMED),
        ([OPEN, more(text("$.a[999999999]", "x")), END], MALFORMED),
        ([OPEN, more(text("$.a[0]", "x"), text("$.a['0']", "y")), END], MALFORMED),
        ([OPEN, more(text("$.a[0]", "x"), text("$.a[0].b", "y")), END], MALFORMED),
        ([OPEN, more(text("$.a[0].b", "x"), text("$.a[0]", "y")), END], MALFORMED),
        ([OPEN, more(text("$.a", "x"), text("$['a']", "y")), END], MALFORMED),
        ([OPEN, more(text("$.a-b", "x")), END], MALFORMED),
        ([OPEN, more(text("$.a[01]", "x")), END], MALFORMED),
        ([OPEN, more(text("$. a", "x")), END], MALFORMED),
        ([OPEN, more(text("$.a ", "x")), END], MALFORMED),
        ([OPEN, more(text("$['a','b']", "x")), END], MALFORMED),
        # values
        ([OPEN, more(*(piece(f"$.n[{at}]", numberValue=n) for at, n in enumerate(
            (3, -0.0, 2.5, 2**53 - 1, 2**53, -(2**53), 1e20, 1e-7)))), END],
         ran(("f", None, {"n": [3, 0, 2.5, 2**53 - 1, float(2**53), -float(2**53), 1e20, 1e-7]}))),
        ([OPEN, more(piece("$.a", boolValue=True), piece("$.b", boolValue=False), piece("$.c", nullValue="NULL_VALUE"),
          piece("$.d", nullValue=None), text("$.e", "")), END],
         ran(("f", None, {"a": True, "b": False, "c": None, "d": None, "e": ""}))),
        ([OPEN, more(piece("$.a", structValue={})), END], MALFORMED),
        ([OPEN, more(piece("$.a", boolValue="true")), END], MALFORMED),
        # ends
        ([OPEN, more(text("$.a", "x"))], MALFORMED),
        ([OPEN, more(text("$.a", "x", True)), END], MALFORMED),
        ([OPEN, more(text("$.a", "x"), last=True), {"text": "so"}, END], ran(("f", None, {"a": "x"}))),
        ([OPEN, more(text("$.a", "x"), last=True), END, END], MALFORMED),
        ([OPEN, END, OPEN, END], ran(("f", None, {}), ("f", None, {}))),
        ([call(partialArgs=[text("$.a", "x")])], ran(("f", None, {"a": "x"}))),
        ([call(partialArgs=[text("$.a", "x")], willContinue=True), END], ran(("f", None, {"a": "x"}))),
        ([call(willContinue=False, args=A)], ran(("f", None, A))),
        ([OPEN, call("g", args=A), more(text("$.a", "x"), last=True)], ran(("f", None, {"a": "x"}), ("g", None, A))),
        ([OPEN, call(partialArgs=[text("$.a", "x")])], MALFORMED),
        ([call(id="1", willContinue=True), more(text("$.a", "x"), last=True, id="2")], MALFORMED),
        ([call(id="1", willContinue=True), more(text("$.a", "x"), last=True)], ran(("f", "1", {"a": "x"}))),
        # pieces that cannot be read are not lost in silence
        ([call(partialArgs={"jsonPath": "$.a", "stringValue": "x"})], MALFORMED),
        ([call(partialArgs=["x"])], MALFORMED),
        ([call(partialArgs=[])], ran(("f", None, {}))),
        ([call(partialArgs=None, args=A)], ran(("f", None, A))),
    ],
)  # fmt: skip
def test_calls(parts: list[Any], want: tuple[Any, ...]) -> None:
    assert told(*parts) == want
    assert told(*parts, end=chunk(finish="MAX_TOKENS")) == ("truncated", [], [])


def test_integers_in_pieces_are_integers_and_others_floats() -> None:
    pieces = (piece("$.a", numberValue=3.0), piece("$.b", numberValue=2**53), piece("$.c", numberValue=2.5))

    assert repr(told(OPEN, more(*pieces), END)[1][0][2]) == "{'a': 3, 'b': 9007199254740992.0, 'c': 2.5}"


def test_paths_of_any_length_are_judged_and_raise_nothing() -> None:
    assert told(OPEN, more(text("$" + ".a" * 100, "x")), END)[2] == []
    for deep in ("$" + ".a" * 101, "$.a" + "[0]" * 5000):
        assert told(OPEN, more(text(deep, "x")), END) == ("completed", [], [("f", "too_deep")])


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("STOP", "completed"), ("MAX_TOKENS", "truncated"), ("CONTINUATION", "truncated"), ("SAFETY", "filtered"),
        ("RECITATION", "filtered"), ("LANGUAGE", "filtered"), ("BLOCKLIST", "filtered"),
        ("PROHIBITED_CONTENT", "filtered"), ("SPII", "filtered"), ("IMAGE_SAFETY", "filtered"),
        ("IMAGE_OTHER", "filtered"), ("MODEL_ARMOR", "filtered"), ("ESCALATION", "filtered"),
        ("PUP_LIMITED_DISABLED", "filtered"), ("MALFORMED_FUNCTION_CALL", "failed"), ("UNEXPECTED_TOOL_CALL", "failed"),
        ("MALFORMED_RESPONSE", "failed"), ("TOO_MANY_TOOL_CALLS", "failed"), ("MISSING_THOUGHT_SIGNATURE", "failed"),
        ("NO_IMAGE", "failed"), ("OTHER", "failed"), ("FINISH_REASON_UNSPECIFIED", "truncated"), ("", "truncated"),
        (None, "truncated"), ("TOOL_CALLS", "withheld"), ("stop", "withheld"), ([], "withheld"),
        (0, "truncated"), (1, "completed"), (2, "truncated"), (3, "filtered"), (4, "filtered"), (5, "failed"),
        (6, "withheld"), (True, "withheld"),
    ],
)  # fmt: skip
def test_finish_reasons(reason: object, outcome: str) -> None:
    frames = stream(chunk(call(args=A)), chunk({"text": "x"}, finish=reason))
    body = json.dumps(chunk(call(args=A), finish=reason)).encode()

    assert in_all_pieces("google-generate", frames).outcome == outcome
    assert decode_body(body, "google-generate").outcome == outcome
    assert in_all_pieces("google-generate", frames, broken=True).outcome == "aborted"
    later = in_all_pieces("google-generate", frames + stream(STOP)).outcome
    assert later == (
        "completed" if outcome == "truncated" and reason not in ("MAX_TOKENS", "CONTINUATION", 2) else outcome
    )


@pytest.mark.parametrize("reason", ["SAFETY", "OTHER", "JAILBREAK", "NEW"])
def test_a_blocked_prompt_is_filtered(reason: str) -> None:
    blocked = {"promptFeedback": {"blockReason": reason}}

    assert in_all_pieces("google-generate", stream(blocked)).outcome == "filtered"
    assert in_all_pieces("google-generate", stream(chunk(call(args=A)), STOP, blocked)).outcome == "filtered"
    assert in_all_pieces("google-generate", stream({"promptFeedback": {}}, STOP)).outcome == "completed"


def test_only_candidate_0_counts_and_only_its_visible_text() -> None:
    mine = chunk({"text": "hm", "thought": True}, {"text": "Hi"}, call(args=A))["candidates"][0]
    other = chunk({"text": "x"}, call("g"), finish="SAFETY", index=1)["candidates"][0]
    result = in_all_pieces("google-generate", stream({"candidates": [other, mine]}, {"candidates": [other]}, STOP))

    assert (short(result), result.text) == (ran(("f", None, A)), "Hi")
    assert in_all_pieces("google-generate", stream({"candidates": [other]})).outcome == "truncated"


@pytest.mark.parametrize(
    "odd", [{}, {"candidates": []}, {"candidates": {}}, {"candidates": [None]}, {"candidates": [{"content": "x"}]}]
)
def test_odd_bodies_run_nothing(odd: Frame) -> None:
    assert short(decode_body(json.dumps(odd).encode(), "google-generate")) == ("truncated", [], [])
