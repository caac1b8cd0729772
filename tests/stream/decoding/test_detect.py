"""Which dialect some bytes look like: right for every transcript; what is of another interface has none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.stream.transcripts import CONFORMANCE, transcripts
from toolonce.stream import DIALECTS, UnknownDialect, detect_dialect
from toolonce.stream.turns.turn import Dialect

EVERY = transcripts(CONFORMANCE)
# An error alone is nobody's, and bytes that cannot be read are nothing.
BARE = {t.key.split("/")[1] for t in EVERY if "body_error" in t.key} | {
    "conv_exception_first", "conv_prelude_checksum", "gem_array_empty", "gem_array_error_only", "gem_body_array_error",
    "oll_error_only",
}  # fmt: skip
GUESSES = json.loads((CONFORMANCE / "guess.json").read_text("utf-8"))


@pytest.mark.parametrize("transcript", [pytest.param(t, id=t.key) for t in EVERY if t.key.split("/")[1] not in BARE])
def test_the_dialect_of_every_transcript_is_guessed(transcript: Any) -> None:
    assert detect_dialect(transcript.data) == transcript.dialect


@pytest.mark.parametrize(("name", "dialect"), [(name, it) for name, it in GUESSES.items() if it in (None, *DIALECTS)])
def test_what_is_of_no_dialect_or_another_interface_is_not_guessed(name: str, dialect: Dialect | None) -> None:
    data = (CONFORMANCE / name).read_bytes()

    if dialect is None:
        with pytest.raises(UnknownDialect):
            detect_dialect(data)
    else:
        assert detect_dialect(data) == dialect


def test_what_nobody_knows_is_not_guessed() -> None:
    for data in (b"", b"hello", b"data: {}\n\n", b"{}", b"[1]", b"data: \xff\n\n", b'{"error": 1}'):
        with pytest.raises(UnknownDialect, match="name one of"):
            detect_dialect(data)
