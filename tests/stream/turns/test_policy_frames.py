"""The policy on frames, sentence by sentence, on one good turn of every dialect that sends events as text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.stream.feeding import decoded, in_all_pieces, short
from tests.support.stream.wire import RENDER, WireCall
from toolonce.stream import DIALECTS, TurnDecoder
from toolonce.stream.dialects.table import TABLE
from toolonce.stream.turns.turn import Dialect
from toolonce.stream.wire.sse import SseReader

SSE = [dialect for dialect in DIALECTS if TABLE[dialect].framing is SseReader]

CALLS = [WireCall("c1", "f", ('{"a":', '"\u00e9"', "}")), WireCall("c2", "g", ("{", "}"))]
GOOD: dict[str, bytes] = {dialect: RENDER[dialect](CALLS, [0, 1, 0, 1, 0], "Hi") for dialect in SSE}
WANT: tuple[Any, ...] = ("completed", [("f", "c1", {"a": "\u00e9"}), ("g", "c2", {})], [])
NAMED = ("openai-responses", "anthropic", "google-interactions", "cohere")  # their frames have kinds

everywhere = pytest.mark.parametrize("dialect", SSE)


def with_everywhere(dialect: Dialect, extra: bytes) -> set[str]:
    """The outcomes of the good turn with something more before, between and after its events."""
    events = GOOD[dialect].split(b"\n\n")[:-1]
    outcomes: set[str] = set()
    for place in range(len(events) + 1):
        before, after = events[:place], events[place:]
        data = b"".join(event + b"\n\n" for event in before) + extra + b"".join(event + b"\n\n" for event in after)
        outcomes.add(decoded(dialect, data).outcome)
    return outcomes


ERRORS = [
    b'data: {"error": {"message": "busy", "code": 529}}\n\n',
    b'data: {"error": "busy"}\n\n',
    b'data: {"error": ""}\n\n',
    b'data: {"choices": [], "candidates": [], "error": {}}\n\n',
    b'data: {"type": "error", "code": "overloaded", "message": "busy"}\n\n',
    b'data: {"event_type": "error", "type": "new"}\n\n',
    b'data: [{"error": {"code": 503, "status": "UNAVAILABLE"}}]\n\n',
    b'event: error\ndata: {"detail": "busy"}\n\n',
    b"event: error\ndata: the server is busy\n\n",
    b"event:error\r\ndata:[DONE]\r\n\r\n",
    b'{"error": {"message": "busy"}}\n\n',
    b'{\n  "error": {\n    "code": 503\n  }\n}\n\n',
    b'[{\n  "error": "busy"\n}]\n\n',
    b'HTTP/1.1 503\n{"type":"error"}\n\n',
    b"error: slot gone\n\n",
    b'error: {"message": "busy"}\n\n',
]


@everywhere
@pytest.mark.parametrize("error", ERRORS)
def test_an_error_anywhere_fails_the_turn(dialect: Dialect, error: bytes) -> None:
    assert with_everywhere(dialect, error) == {"failed"}


@everywhere
def test_an_error_comes_before_every_other_verdict(dialect: Dialect) -> None:
    for spoiled in (b": \xff\n\n", b"data: {\n\n", b"data: 5\n\n"):
        for data in (GOOD[dialect] + spoiled + ERRORS[0], ERRORS[0] + spoiled, spoiled + ERRORS[10]):
            assert in_all_pieces(dialect, data).outcome == "failed"
            assert in_all_pieces(dialect, data, broken=True).outcome == "failed"


@everywhere
def test_an_error_document_counts_without_its_last_line_end(dialect: Dialect) -> None:
    for broken in (False, True):
        assert in_all_pieces(dialect, GOOD[dialect] + b'{"error": "busy"}', broken=broken).outcome == "failed"


NOTHING = [
    b": ping\n\n", b"\n\n\n", b"event: new\n\n", b"data:\n\n", b"data\n\n", b"id: 5\n\n", b"retry: 3\n\n",
    b"event: error\n\n", b"event: error\ndata:\n\n", b"foo: bar\n\n", b"upstream failed\n\n", b"error:\n\n",
    b"error\n\n", b"error: null\n\n", b"errors: slot gone\n\n", b'data: {"error": null}\n\n',
    b'data: {"type": "new.event", "index": 0}\n\n',
    b'{"a": 1}\n\n', b'data : {"error": 1}\n\n', b"Data: {\n\n",
]  # fmt: skip


@everywhere
@pytest.mark.parametrize("nothing", NOTHING)
def test_what_means_nothing_changes_nothing(dialect: Dialect, nothing: bytes) -> None:
    assert with_everywhere(dialect, nothing) == {"completed"}


@pytest.mark.parametrize("dialect", [dialect for dialect in SSE if dialect != "openai-chat"])
def test_done_is_never_needed_and_never_enough(dialect: Dialect) -> None:
    assert with_everywhere(dialect, b"event: done\ndata: [DONE]\n\n") == {"completed"}
    assert in_all_pieces(dialect, b"data: [DONE]\n\n").outcome == "truncated"


VIOLATIONS = [
    b"data: words\n\n", b'data: {"a":\n\n', b"data: 5\n\n", b"data: null\n\n", b"data: []\n\n", b"data: {} {}\n\n",
    b'data: "[DONE]"\n\n', b"data:  \n\n", b"data\ndata\n\n", b"data: \xef\xbb\xbf{}\n\n",
    b'data: {"x": 1, "x": 2}\n\n', b'data: {"x": [{"y": 1, "y": 1}]}\n\n',
]  # fmt: skip
WRONG_BYTES = [
    b": \xff\n\n", b"foo\xc3\n\n", b'data: {"x": "\xed\xa0\x80"}\n\n', b"event: \xc0\xaf\n\n", b"data: \xe2\x82\n\n",
]  # fmt: skip


@everywhere
@pytest.mark.parametrize("wrong", VIOLATIONS + WRONG_BYTES)
def test_a_frame_that_may_have_been_part_of_a_call_spoils_the_turn(dialect: Dialect, wrong: bytes) -> None:
    assert with_everywhere(dialect, wrong) == {"malformed"}


@everywhere
def test_every_beginning_of_a_good_turn_runs_nothing_until_its_terminal(dialect: Dialect) -> None:
    data = GOOD[dialect].replace(b"\\u00e9", "\u00e9".encode())
    ended, broken = [], []
    for size in range(len(data) + 1):
        ended.append(short(decoded(dialect, data[:size])))
        broken.append(short(decoded(dialect, data[:size], broken=True)))
    whole = ended.index(WANT)

    assert ended == [("truncated", [], [])] * whole + [WANT] * (len(data) + 1 - whole)
    released = len(data) + 1 if dialect == "google-generate" else broken.index(WANT)
    assert broken == [("aborted", [], [])] * released + [WANT] * (len(data) + 1 - released)


def _over_lines(data: bytes) -> bytes:
    """The same JSON, spread over several data lines."""

    def spread(found: re.Match[bytes]) -> bytes:
        if found[1] == b"[DONE]":
            return found[0]
        lines = json.dumps(json.loads(found[1]), indent=1).splitlines()
        return b"\n".join(b"data: " + line.encode() for line in lines)

    return re.sub(rb"data: (.+)", spread, data)


SAME: dict[str, Callable[[bytes], bytes]] = {
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "cr": lambda data: data.replace(b"\n", b"\r"),
    "mixed": lambda data: data.replace(b"\n\n", b"\r\n\r"),
    "byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "no space": lambda data: data.replace(b": ", b":"),
    "no event lines": lambda data: re.sub(rb"event: .*\n", b"", data),
    "event line last": lambda data: re.sub(rb"(event: .*\n)(data: .*\n)", rb"\2\1", data),
    "event names nobody knows": lambda data: re.sub(rb"(event: ).*\n", rb"\1message\n", data),
    "event name given twice": lambda data: re.sub(rb"(event: .*\n)", rb"event: error\n\1", data),
    "several data lines": _over_lines,
    "no last blank line": lambda data: data[:-1],
    "no last line end": lambda data: data[:-2],
    "other fields": lambda data: data.replace(b"data: ", b"id: 7\nretry: 1\n: x\nfoo\ndata: "),
}


@everywhere
@pytest.mark.parametrize("written", SAME)
def test_one_turn_may_be_written_in_many_ways(dialect: Dialect, written: str) -> None:
    assert short(in_all_pieces(dialect, SAME[written](GOOD[dialect]))) == WANT


@pytest.mark.parametrize("dialect", NAMED)
def test_the_event_line_names_a_frame_that_has_no_type(dialect: Dialect) -> None:
    bare = re.sub(
        rb'"(type|event_type)": "(response|message|content|step|interaction|tool-)[._a-z-]*", ', b"", GOOD[dialect]
    )

    assert b'"event_type"' not in bare
    assert short(in_all_pieces(dialect, bare)) == WANT


@pytest.mark.parametrize("dialect", NAMED)
def test_an_event_under_the_name_of_another_one_is_malformed(dialect: Dialect) -> None:
    names = re.findall(rb"event: (.*)\n", GOOD[dialect])
    last = next(name for name in reversed(names) if name != b"done")

    for right, wrong in ((last, names[0]), (names[0], last)):
        data = GOOD[dialect].replace(b"event: " + right, b"event: " + wrong)
        assert in_all_pieces(dialect, data).outcome == "malformed"


@everywhere
def test_a_last_event_that_is_cut_does_not_count(dialect: Dialect) -> None:
    assert in_all_pieces(dialect, GOOD[dialect] + b'event: error\ndata: {"x": ').outcome == "completed"
    assert in_all_pieces(dialect, GOOD[dialect] + b'event: error\ndata: {"x": 1}').outcome == "failed"
    assert in_all_pieces(dialect, GOOD[dialect] + b'data: {"x": "\xe2\x82').outcome == "completed"
    assert in_all_pieces(dialect, GOOD[dialect] + b'data: {"x": "\xe2\x28').outcome == "malformed"


def test_a_release_comes_with_the_terminal_and_not_before() -> None:
    for dialect in SSE:
        decoder = TurnDecoder(dialect)
        states = []
        for event in GOOD[dialect].split(b"\n\n")[:-1]:
            decoder.feed(event + b"\n\n")
            states.append(decoder.released)
        after = {"google-generate": 0, "google-interactions": 2, "cohere": 2}.get(dialect, 1)
        assert states == [False] * (len(states) - after) + [True] * after
