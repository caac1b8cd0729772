"""Ollama beyond the conformance streams: errors over several lines, cuts inside characters, calls without ids."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.stream.feeding import in_all_pieces, short
from tests.support.stream.transcripts import CONFORMANCE, decode, transcripts
from tests.support.stream.turns import outcomes
from toolonce.stream import TurnDecoder, TurnLimits, decode_body
from toolonce.stream.harness.history import history, replies

CALL = {"function": {"name": "f", "arguments": {"a": "é"}}}
NO_IDS = next(t for t in transcripts(CONFORMANCE) if t.key == "ollama/oll_no_ids")


def line(*, done: bool = False, **message: Any) -> bytes:
    """One line of a stream; with ``done`` the last one."""
    end = {"done": done, "done_reason": "stop"} if done else {"done": done}
    frame = {"model": "m", "message": {"role": "assistant", "content": "", **message}, **end}
    return json.dumps(frame, ensure_ascii=False).encode() + b"\n"


GOOD = line(content="Hé") + line(tool_calls=[CALL]) + line(done=True)
ERRORS = [
    b'{\n  "error": "the model is gone"\n}\n',
    b'{\n\t"error": {\n\t\t"message": "the model is gone",\n\t\t"details": [\n{"a": 1}\n]\n\t}\n}\n',
    b'{"error":\r\n"the model is gone"\r\n}',
    b'{"error": {"message": "the model is gone"}\n}\n',
    b'[{\n"error": "the model is gone"\n}]\n',
    b'<pre>\n{\n"error": "the model is gone"\n}',
    b'{"error": "the model is gone"}',
]


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("error", ERRORS)
def test_an_error_over_several_lines_fails_the_turn_wherever_it_stands(error: bytes, broken: bool) -> None:
    ended = error if error.endswith(b"\n") else error + b"\n"
    lines = GOOD.splitlines(keepends=True)
    for place in range(len(lines) + 1):
        data = b"".join(lines[:place]) + ended + b"".join(lines[place:])
        result = in_all_pieces("ollama", data, broken=broken)

        assert result.outcome == "failed"
        assert result.error is not None
        assert result.error.message == "the model is gone"
    assert in_all_pieces("ollama", GOOD + error, broken=broken).outcome == "failed"


@pytest.mark.parametrize("data", [b'{\n"message": "gone"\n}\n', b"{\n}\n", b'{\n"error": null\n}\n', b"words\n"])
def test_lines_that_are_neither_frames_nor_an_error_are_malformed(data: bytes) -> None:
    lines = GOOD.splitlines(keepends=True)
    for place in range(len(lines) + 1):
        spoiled = b"".join(lines[:place]) + data + b"".join(lines[place:])
        assert in_all_pieces("ollama", spoiled).outcome == "malformed"


def test_lines_that_may_be_an_error_are_kept_up_to_their_limit() -> None:
    decoder = TurnDecoder("ollama", limits=TurnLimits(stray_bytes=1000))
    decoder.feed(b"words\n" * 10_000 + b'{\n"error": "gone"\n}\n')

    assert decoder.eof().error is None
    assert len(decoder._framing.stray) < 200


def test_a_stream_cut_at_any_byte_was_cut_and_its_bytes_are_not_wrong() -> None:
    """Also inside a character, a byte order mark and a line."""
    data = b"\xef\xbb\xbf" + GOOD
    ended = [short(in_all_pieces("ollama", data[:at]))[0] for at in range(len(data) + 1)]
    broken = [short(in_all_pieces("ollama", data[:at], broken=True))[0] for at in range(len(data) + 1)]

    assert ended == ["truncated"] * (len(data) - 1) + ["completed"] * 2  # the last line counts without its line end
    assert broken == ["aborted"] * len(data) + ["completed"]


@pytest.mark.parametrize("broken", [False, True])
def test_what_is_cut_after_done_changes_nothing_and_wrong_bytes_do(broken: bool) -> None:
    assert in_all_pieces("ollama", GOOD + b'{"x": "\xe2\x82', broken=broken).outcome == "completed"
    assert in_all_pieces("ollama", GOOD + b'{"x": "\xe2\x28', broken=broken).outcome == "malformed"


def test_calls_without_ids_get_the_same_stand_ins_in_the_history_and_in_the_results() -> None:
    """An id is unique in its turn and differs in every turn, so that no result can be paired with another call."""
    turn = decode(NO_IDS)
    pairs = []
    for turn_id in ("step-1", "step-2"):
        (message,) = history(turn, "ollama", turn_id=turn_id)
        answered = replies(outcomes(turn), "ollama", turn_id=turn_id)
        sent = [call["id"] for call in message["tool_calls"]]
        assert [reply["tool_call_id"] for reply in answered] == sent
        assert [reply["tool_name"] for reply in answered] == [call.name for call in turn.calls]
        pairs += sent

    assert len(set(pairs)) == 4
    assert all(pairs)


def test_an_error_body_over_several_lines_fails_too() -> None:
    for error in ERRORS[:5]:
        assert decode_body(error, "ollama").outcome == "failed"


def test_an_answer_of_the_generate_interface_is_no_chat_turn_without_text() -> None:
    data = b'{"model":"m","response":"Hi","done":false}\n{"model":"m","response":"","done":true,"done_reason":"stop"}\n'
    for result in (
        in_all_pieces("ollama", data),
        decode_body(data.splitlines()[0].replace(b"false", b"true"), "ollama"),
    ):
        assert result.outcome == "malformed"
        assert "/api/generate" in result.diagnostics[0]


def test_a_turn_that_was_cut_before_its_usage_has_none() -> None:
    assert in_all_pieces("ollama", GOOD[:-5]).usage is None
    assert in_all_pieces("ollama", GOOD.replace(b'"stop"}', b'"stop", "eval_count": 5}')).usage == {"eval_count": 5}
