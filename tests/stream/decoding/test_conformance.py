"""Every hand-made stream and body has one right answer, whatever pieces its bytes come in."""

from __future__ import annotations

import pytest

from tests.support.stream.transcripts import (
    CONFORMANCE,
    MORE_RECORDINGS,
    RECORDINGS,
    RecordedStream,
    answer,
    decode,
    exact,
    random_pieces,
    single_bytes,
    transcripts,
    unread,
)

OURS = transcripts(CONFORMANCE)
THEIRS = transcripts(RECORDINGS)
THEIRS_TOO = transcripts(MORE_RECORDINGS)
UNREAD = [*unread(CONFORMANCE), *unread(MORE_RECORDINGS)]
EVERY = [pytest.param(t, id=t.key) for t in OURS] + [
    pytest.param(t, id=f"{folder}/{t.key}") for folder, theirs in (("recorded", THEIRS), ("recorded-2", THEIRS_TOO))
    for t in theirs
]  # fmt: skip


def test_no_conformance_case_is_missing() -> None:
    assert len(OURS) + len(unread(CONFORMANCE)) == 392


@pytest.mark.skipif(not THEIRS, reason=f"the recordings are not at {RECORDINGS}")
def test_the_recordings_are_all_there() -> None:
    assert len(THEIRS) == 58


@pytest.mark.skipif(not THEIRS_TOO, reason=f"the second recordings are not at {MORE_RECORDINGS}")
def test_the_second_recordings_are_all_there() -> None:
    assert len(THEIRS_TOO) + len(unread(MORE_RECORDINGS)) == 119


@pytest.mark.parametrize("key", UNREAD)
def test_a_transcript_of_a_dialect_that_is_not_decoded_here(key: str) -> None:
    pytest.skip(f"no dialect {key.split('/')[0]}")


@pytest.mark.parametrize("transcript", EVERY)
def test_a_transcript_in_one_piece_has_its_right_answer(transcript: RecordedStream) -> None:
    result = decode(transcript)

    assert exact(answer(result)) == exact(transcript.answer)


@pytest.mark.parametrize("transcript", EVERY)
def test_a_transcript_byte_by_byte_has_the_same_answer(transcript: RecordedStream) -> None:
    result = decode(transcript, single_bytes(transcript.data))

    assert exact(answer(result)) == exact(transcript.answer)
    assert result == decode(transcript)


@pytest.mark.parametrize("transcript", EVERY)
def test_a_transcript_in_random_pieces_has_the_same_answer(transcript: RecordedStream) -> None:
    result = decode(transcript, random_pieces(transcript.data, seed=transcript.key))

    assert exact(answer(result)) == exact(transcript.answer)
