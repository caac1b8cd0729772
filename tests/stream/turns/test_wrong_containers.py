"""A member of another type in the place of an object or a list may have held a part of a call: none runs without it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.stream.events import events, frame_in, with_frame
from tests.support.stream.transcripts import CONFORMANCE, RecordedStream, answer, exact, transcripts
from toolonce.stream import DIALECTS, TurnDecoder

STREAMS = [t for t in transcripts(CONFORMANCE) if t.kind == "stream" and t.answer["calls"]]


def containers(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each object and list inside a frame, as (what holds it, its key there)."""
    for key, inner in list(value.items()) if isinstance(value, dict) else list(enumerate(value)):
        if isinstance(inner, (dict, list)):
            yield value, key
            yield from containers(inner)


def spoiled(frame: Any) -> Iterator[Any]:
    """The frame with a text, a number and a list of a text in the place of each of its containers."""
    for place, _ in enumerate(containers(frame)):
        for wrong in ("x", 5, ["x"]):
            changed = copy.deepcopy(frame)
            holder, key = list(containers(changed))[place]
            holder[key] = wrong
            yield changed


def test_streams_with_calls_of_every_dialect_are_tried() -> None:
    assert {t.dialect for t in STREAMS} == set(DIALECTS)


@pytest.mark.parametrize("transcript", [pytest.param(t, id=t.key) for t in STREAMS])
def test_no_call_is_dropped_or_changed_for_a_container_of_another_type(transcript: RecordedStream) -> None:
    """A call may be refused by itself, for its arguments, or the turn as a whole."""
    pieces = events(transcript)
    for at, piece in enumerate(pieces):
        for frame in spoiled(frame_in(transcript, piece) or {}):
            decoder = TurnDecoder(transcript.dialect, **transcript.options)
            decoder.feed(b"".join((*pieces[:at], with_frame(transcript, piece, frame), *pieces[at + 1 :])))
            result = decoder.eof() if transcript.end == "eof" else decoder.abort()

            unchanged = exact(answer(result)["calls"]) == exact(transcript.answer["calls"])
            assert unchanged or not result.calls or result.rejected, frame
