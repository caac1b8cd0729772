"""`toolonce decode`: what a stream means, for a person and for a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.stream.transcripts import CONFORMANCE, RecordedStream, transcripts

SOME = [t for t in transcripts(CONFORMANCE) if t.end == "eof"][::9]


@pytest.mark.parametrize("transcript", [pytest.param(t, id=t.key) for t in SOME])
def test_any_stream_or_body_is_shown_as_json(toolonce: CommandLine, tmp_path: Path, transcript: RecordedStream) -> None:
    path = tmp_path / "turn"
    path.write_bytes(transcript.data)
    said = toolonce("decode", "--json", "--dialect", transcript.dialect, str(path), place=[])

    assert said.json["outcome"] == transcript.answer["outcome"]
    assert [call["arguments"] for call in said.json["calls"]] == [c["arguments"] for c in transcript.answer["calls"]]
    assert said.json["truncated"] is (transcript.answer["outcome"] == "truncated")
    assert said.code == (0 if transcript.answer["outcome"] == "completed" else 1)


def test_a_person_sees_calls_refusals_and_the_guessed_dialect(toolonce: CommandLine) -> None:
    said = toolonce("decode", str(CONFORMANCE / "openai-chat" / "chat_bad_sibling.sse"), place=[])

    assert "openai-chat" in said.out
    assert "refused: invalid_json" in said.out
    assert '{"seats": 12}' in said.out


def test_a_bad_end_is_shown_with_its_reason_and_the_providers_words(toolonce: CommandLine) -> None:
    said = toolonce("decode", str(CONFORMANCE / "google-generate" / "gem_error_pretty_raw.sse"), place=[])

    assert said.code == 1
    assert "failed" in said.out
    assert "UNAVAILABLE 503 overloaded" in said.out


def test_drafts_are_shown_on_the_way(toolonce: CommandLine) -> None:
    said = toolonce("decode", "--drafts", str(CONFORMANCE / "openai-chat" / "chat_two_parallel.sse"), place=[])

    assert 'CallOpened {"call": 0, "name": "get_weather", "call_id": "call_1"}' in said.err
    assert 'TurnEnded {"outcome": "completed"}' in said.err


def test_what_is_no_stream_of_ours_is_one_line(toolonce: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "turn"
    path.write_bytes(b"hello\n")
    said = toolonce("decode", str(path), place=[])

    assert said.code == 2
    assert said.err.count("\n") == 1
    assert "anthropic" in said.err


def test_the_wrong_dialect_is_told_with_the_one_that_it_looks_like(toolonce: CommandLine) -> None:
    """Faults 30."""
    file = str(CONFORMANCE / "openai-chat" / "chat_two_parallel.sse")
    shown = toolonce("decode", "--dialect", "anthropic", file, place=[])
    refused = toolonce("submit", "--scope", "s", "--dialect", "anthropic", file)

    assert "it looks like openai-chat" in " ".join(shown.out.split())
    assert refused.code == 1
    assert "it looks like openai-chat" in refused.err
