"""What holds for every stream: any pieces, any interleaving, any bytes, any prefix."""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.stream.events import events, frame_in, with_frame
from tests.support.stream.transcripts import (
    CONFORMANCE,
    MORE_RECORDINGS,
    RECORDINGS,
    exact,
    transcripts,
)
from tests.support.stream.wire import RENDER, WireCall
from toolonce.stream import DIALECTS, TurnDecoder, TurnResult, decode_body, detect_dialect
from toolonce.stream.turns.errors import StreamError
from toolonce.stream.turns.turn import Dialect

EVERY = [*transcripts(CONFORMANCE), *transcripts(RECORDINGS), *transcripts(MORE_RECORDINGS)]
STREAMS = [transcript for transcript in EVERY if transcript.kind == "stream"]
# Words that mean something to some dialect, put where they do not belong.
SPLINTERS = [
    b"{}", b"null", b"[]", b'"', b"{", b"}", b"\\", b"\r", b"\n\n", b"data: ", b"event: error\n", b"[DONE]", b":",
    b'"type"', b'"index":0', b'"index":1e999', b'"id":5', b"\xff", b"\xef\xbb\xbf", b"\\ud83d", b"1e999", b"NaN",
    b"[" * 300, b"9" * 5000, b'"error":{}', b"true", b"-1", b'{"a":1,"a":2}', b'"name":{}', b"0.5",
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> tuple[Dialect, bytes, dict[str, Any]]:
    """A transcript's dialect, options and bytes, with a few bytes or events changed, dropped, doubled or put in."""
    transcript = draw(st.sampled_from(EVERY))
    pieces = events(transcript) if transcript.kind == "stream" else [transcript.data]
    for _ in range(draw(st.integers(0, 2))):  # whole events: those of a binary stream keep their checksums
        at, other = (draw(st.integers(0, len(pieces) - 1)) for _ in range(2))
        pieces[at : at + 1] = draw(st.sampled_from(([], [pieces[at]] * 2, [pieces[at], pieces[other]]))) or [b""]
    data = bytearray(b"".join(pieces))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        size = draw(st.integers(0, 40))
        match draw(st.sampled_from(("put", "drop", "double", "replace"))):
            case "put":
                data[at:at] = draw(st.sampled_from(SPLINTERS))
            case "drop":
                del data[at : at + size]
            case "double":
                data[at:at] = data[at : at + size]
            case _:
                data[at : at + size] = draw(st.sampled_from(SPLINTERS))
    return transcript.dialect, bytes(data), transcript.options


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(st.text(max_size=6), json_values, max_size=4)


@st.composite
def wire_calls(draw: st.DrawFn) -> tuple[list[WireCall], list[int], list[dict[str, Any]]]:
    """Calls cut into fragments, an order in which they speak, and the arguments they mean."""
    meant = draw(st.lists(objects, max_size=4))
    calls = []
    for number, arguments in enumerate(meant):
        text = json.dumps(arguments, ensure_ascii=draw(st.booleans()))
        cuts = sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=5)))
        ends = [0, *cuts, len(text)]
        fragments = tuple(text[a:b] for a, b in itertools.pairwise(ends))
        calls.append(WireCall(f"id_{number}", f"tool_{number % 2}", fragments))
    order = [number for number, call in enumerate(calls) for _ in call.fragments]
    return calls, draw(st.permutations(order)), meant


def fed(dialect: Dialect, pieces: list[bytes], *, broken: bool = False, **options: Any) -> TurnResult:
    decoder = TurnDecoder(dialect, **options)
    for piece in pieces:
        decoder.feed(piece)
    return decoder.abort() if broken else decoder.eof()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(ends)]


@given(mutated(), st.lists(st.integers(0, 6000), max_size=12), st.booleans())
def test_any_chunking_gives_the_same_result(
    case: tuple[Dialect, bytes, dict[str, Any]], places: list[int], broken: bool
) -> None:
    dialect, data, options = case
    pieces, whole = (fed(dialect, it, broken=broken, **options) for it in (cut(data, places), [data]))

    assert repr(pieces) == repr(whole)


@given(st.sampled_from(DIALECTS), wire_calls(), st.text(max_size=10))
def test_any_interleaving_of_parallel_calls_gives_the_same_calls(
    dialect: Dialect, wire: tuple[list[WireCall], list[int], list[dict[str, Any]]], text: str
) -> None:
    calls, order, meant = wire
    result = fed(dialect, [RENDER[dialect](calls, order, text)])

    assert result.outcome == "completed", result.diagnostics
    assert exact([call.arguments for call in result.calls]) == exact(meant)
    assert [(call.call_id, call.name) for call in result.calls] == [(call.call_id, call.name) for call in calls]
    assert result.text == text


@given(st.sampled_from(DIALECTS), st.binary(max_size=300), st.booleans())
def test_no_bytes_raise(dialect: Dialect, data: bytes, broken: bool) -> None:
    fed(dialect, [data, b"\n\n"], broken=broken)
    decode_body(data, dialect)
    with contextlib.suppress(StreamError):
        detect_dialect(data)


@given(mutated(), st.sampled_from(DIALECTS), st.booleans())
def test_no_damaged_stream_raises_and_only_a_completed_turn_has_calls(
    case: tuple[Dialect, bytes, dict[str, Any]], other: Dialect, broken: bool
) -> None:
    for dialect, options in ((case[0], case[2]), (other, {})):
        for result in (fed(dialect, [case[1]], broken=broken, **options), decode_body(case[1], dialect)):
            assert result.outcome == "completed" or (not result.calls and not result.rejected)
            assert result.truncated == (result.outcome == "truncated")


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data())
def test_a_frame_with_any_value_in_any_place_raises_nothing(dialect: Dialect, data: st.DataObject) -> None:
    transcript = data.draw(st.sampled_from([t for t in STREAMS if t.dialect == dialect]))
    pieces = events(transcript)
    frames = [(at, frame) for at, piece in enumerate(pieces) if (frame := frame_in(transcript, piece))]
    assume(frames)
    at, frame = data.draw(st.sampled_from(frames))
    _poison(frame, data)
    pieces[at] = with_frame(transcript, pieces[at], frame)
    result = fed(dialect, pieces, **transcript.options)

    assert result.outcome == "completed" or not result.calls


def _poison(frame: Any, data: st.DataObject) -> None:
    """Put a value of any type in the place of one somewhere in the frame."""
    target = frame
    while True:
        keys = list(target) if isinstance(target, dict) else list(range(len(target)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        inner = target[key]
        if isinstance(inner, (dict, list)) and inner and data.draw(st.booleans()):
            target = inner
            continue
        target[key] = data.draw(st.sampled_from([None, 0, -1, True, 1.5, "", "x", [], {}, [[]], [{}], {"a": 1}, 2**70]))
        return


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_turn_leaves_nothing_for_the_garbage_collector(dialect: Dialect) -> None:
    calls = [WireCall("c1", "f", ('{"a":', "1}")), WireCall("c2", "g", ("{}",))]
    data = RENDER[dialect](calls, [0, 1, 0], "Hi")
    gc.collect()
    gc.disable()
    try:
        assert fed(dialect, [data]).outcome == "completed"
        assert gc.collect() == 0
    finally:
        gc.enable()
