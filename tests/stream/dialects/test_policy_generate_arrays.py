"""generateContent without ``alt=sse``, sentence by sentence of the policy: one array as a stream or body; numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.stream.feeding import Frame, in_all_pieces, short
from tests.support.stream.transcripts import CONFORMANCE, answer, exact, transcripts
from toolonce.stream import TurnDecoder, TurnResult, decode_body

CALL: Frame = {"functionCall": {"name": "f", "args": {"a": 1}}}
RAN: tuple[Any, ...] = ("completed", [("f", None, {"a": 1})], [])
ERROR = {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}


def chunk(*parts: Frame, finish: object = None) -> Frame:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}]}


def array(*elements: Any, end: str = "]") -> bytes:
    return ("[" + "\n,\r\n".join(json.dumps(element, indent=2) for element in elements) + end).encode()


def read(data: bytes, *, broken: bool = False) -> TurnResult:
    return in_all_pieces("google-generate", data, broken=broken)


WHOLE = array(chunk(CALL), chunk(finish="STOP"))


def test_the_closing_bracket_is_the_end_and_what_breaks_later_changes_nothing() -> None:
    for data in (WHOLE, b"\xef\xbb\xbf \n" + WHOLE + b"\r\n"):
        assert short(read(data)) == short(read(data, broken=True)) == RAN
    assert short(decode_body(WHOLE, "google-generate")) == RAN


def test_the_turn_is_released_by_the_bracket_and_not_before() -> None:
    decoder = TurnDecoder("google-generate")
    decoder.feed(WHOLE[:-1])
    assert not decoder.released
    decoder.feed(WHOLE[-1:])

    assert decoder.released
    assert decoder.finished


@pytest.mark.parametrize("finish", ["STOP", "SAFETY", "MAX_TOKENS", "OTHER", "NEW"])
def test_without_the_bracket_the_turn_is_cut_whatever_was_told(finish: str) -> None:
    data = array(chunk(CALL), chunk(finish=finish), end="")

    for cut in (data, data + b",", data + b" \n"):
        assert read(cut).outcome == "truncated"
        assert read(cut, broken=True).outcome == "aborted"


@pytest.mark.parametrize("data", [
    WHOLE + b"x", WHOLE + b"{}", WHOLE + b"[]", WHOLE[:-1] + b",]", array(chunk(CALL), 5), array([chunk(CALL)]),
    array(chunk(CALL), end="{}]"), WHOLE[:-1] + b",{a}]", b"[" + WHOLE + b"]", WHOLE[:-1] + b"\x00]",
])  # fmt: skip
def test_what_is_no_array_of_objects_is_malformed_before_a_break_and_the_finish_reason(data: bytes) -> None:
    assert read(data).outcome == read(data, broken=True).outcome == "malformed"
    assert read(data.replace(b"STOP", b"MAX_TOKENS")).outcome == "malformed"


@pytest.mark.parametrize("data", [
    array(ERROR), array(chunk(CALL), ERROR), array(chunk(CALL), ERROR, end=""),
    array(chunk(CALL), chunk(finish="STOP"), ERROR),
    WHOLE + b"\n" + json.dumps(ERROR, indent=1).encode(),
])  # fmt: skip
def test_an_error_object_in_or_behind_the_array_fails_the_turn(data: bytes) -> None:
    assert read(data).outcome == read(data, broken=True).outcome == "failed"


def test_a_member_that_comes_twice_outside_of_arguments_spoils_an_array_as_it_spoils_a_document() -> None:
    """A body whose finish reason came twice was read by its last one."""
    twice = WHOLE.replace(b'"finishReason": "STOP"', b'"finishReason": "SAFETY", "finishReason": "STOP"')

    assert read(twice).outcome == "truncated"  # the frame is not read, so no finish reason came
    assert decode_body(twice, "google-generate").outcome == "malformed"
    refused = WHOLE.replace(b'"a": 1', b'"a": 1, "a": 2')
    for result in (read(refused), decode_body(refused, "google-generate")):
        assert short(result) == ("completed", [], [("f", "duplicate_key")])


def test_an_empty_array_has_no_end_of_a_turn() -> None:
    for result in (read(b"[]"), decode_body(b"[]", "google-generate"), decode_body(b" [ ] ", "google-generate")):
        assert result.outcome == "truncated"
    assert decode_body(b"[]", "openai-chat").outcome == "malformed"


@pytest.mark.parametrize("transcript", [
    pytest.param(t, id=t.key) for t in transcripts(CONFORMANCE)
    if t.dialect == "google-generate" and t.kind == "stream" and t.end == "eof" and t.data.startswith(b"data: {")
])  # fmt: skip
def test_the_frames_of_every_stream_come_to_the_same_as_an_array(transcript: Any) -> None:
    lines = transcript.data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    frames = [line[6:] for line in lines if line]
    if not all(line.startswith(b"data: {") for line in lines if line):
        pytest.skip("it is about lines")
    whole = read(b"[" + b",".join(frames) + b"]")

    assert exact(answer(whole)) == exact(transcript.answer)


@pytest.mark.parametrize(
    ("number", "outcome"),
    [(0, "truncated"), (1, "completed"), (2, "truncated"), (3, "filtered"), (4, "filtered"), (5, "failed"),
     *((n, "withheld") for n in (6, 9, 10, 15, -1, 1.0, True, "1"))],
)  # fmt: skip
def test_finish_reasons_as_numbers(number: object, outcome: str) -> None:
    assert read(array(chunk(CALL), chunk(finish=number))).outcome == outcome
    assert decode_body(json.dumps(chunk(CALL, finish=number)).encode(), "google-generate").outcome == outcome


@pytest.mark.parametrize(
    ("reason", "outcome"), [(0, "completed"), (1, "filtered"), (9, "filtered"), ("NEW", "filtered")]
)
def test_any_block_reason_but_0_blocks(reason: object, outcome: str) -> None:
    assert read(array({"promptFeedback": {"blockReason": reason}}, chunk(CALL, finish=1))).outcome == outcome
