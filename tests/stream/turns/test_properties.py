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

from tests.support.stream.transcripts import (
    CONFORMANCE,
    MORE_RECORDINGS,
    RECORDINGS,
    RecordedStream,
    answer,
    decode,
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


def prefixes(transcript: RecordedStream) -> list[bytes]:
    """The stream cut behind every line end, or at about a hundred places where there are few."""
    data = transcript.data
    ends = [at + 1 for at in range(len(data)) if data[at : at + 1] in (b"\n", b"\r")]
    if len(ends) < 4:
        ends = list(range(1, len(data), max(1, len(data) // 100)))
    return [data[:end] for end in ends if end < len(data)]


@pytest.mark.parametrize("transcript", [pytest.param(t, id=f"{n}-{t.key}") for n, t in enumerate(STREAMS)])
def test_no_cut_of_a_stream_gives_a_call_before_its_release_point(transcript: RecordedStream) -> None:
    step = max(1, len(prefixes(transcript)) // 60)
    for prefix in prefixes(transcript)[::step]:
        broken = TurnDecoder(transcript.dialect, **transcript.options)
        broken.feed(prefix)
        was_released = broken.released
        assert was_released or not broken.abort().calls


@st.composite
def mutated(draw: st.DrawFn) -> tuple[Dialect, bytes]:
    """A conformance stream with a few bytes changed, dropped, doubled or put in."""
    transcript = draw(st.sampled_from(EVERY))
    data = bytearray(transcript.data)
    for _ in range(draw(st.integers(1, 4))):
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
    return transcript.dialect, bytes(data)


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


def fed(dialect: Dialect, pieces: list[bytes], *, broken: bool = False) -> TurnResult:
    decoder = TurnDecoder(dialect)
    for piece in pieces:
        decoder.feed(piece)
    return decoder.abort() if broken else decoder.eof()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(ends)]


@given(mutated(), st.lists(st.integers(0, 6000), max_size=12), st.booleans())
def test_any_chunking_gives_the_same_result(case: tuple[Dialect, bytes], places: list[int], broken: bool) -> None:
    dialect, data = case

    assert repr(fed(dialect, cut(data, places), broken=broken)) == repr(fed(dialect, [data], broken=broken))


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
    case: tuple[Dialect, bytes], other: Dialect, broken: bool
) -> None:
    for dialect in (case[0], other):
        for result in (fed(dialect, [case[1]], broken=broken), decode_body(case[1], dialect)):
            assert result.outcome == "completed" or (not result.calls and not result.rejected)
            assert result.truncated == (result.outcome == "truncated")


@given(st.sampled_from([t for t in EVERY if t.kind == "stream"]), st.data())
def test_a_frame_with_any_value_in_any_place_raises_nothing(transcript: Any, data: st.DataObject) -> None:
    lines = transcript.data.split(b"\n")
    places = [at for at, line in enumerate(lines) if line.startswith(b"data: {")]
    assume(places)
    at = data.draw(st.sampled_from(places))
    try:
        frame = json.loads(lines[at][6:])
    except ValueError:
        assume(False)
    _poison(frame, data)
    lines[at] = b"data: " + json.dumps(frame).encode()
    result = fed(transcript.dialect, [b"\n".join(lines)])

    assert result.outcome == "completed" or not result.calls


# The first goes on with its arguments after the finish reason: up to there it cannot be told from a call without
# arguments. The others send a finish reason behind each call: a server that ends cleanly there has ended its turn.
SPEAK_ON = {
    "openai-chat/chat_tool_delta_after_finish", "openai-chat/openllmetry_js-together-two-calls",
    "openai-chat/cerebras-cererebras-structured-output-tools.1",
}  # fmt: skip
WHOLE = [t for t in STREAMS if t.answer["outcome"] == "completed" and t.key not in SPEAK_ON]


@pytest.mark.parametrize("transcript", [pytest.param(t, id=t.key) for t in WHOLE])
def test_no_prefix_yields_calls_that_the_whole_would_not(transcript: Any) -> None:
    whole = exact(answer(decode(transcript))["calls"])
    data = transcript.data
    for at in {place + 1 for place, byte in enumerate(data) if byte in b"\n\r}"}:
        result = fed(transcript.dialect, [data[:at]])

        assert result.calls == () or exact(answer(result)["calls"]) == whole


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
