"""Frames are read fast where that is exact: the two ways must not be told apart."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolonce.stream.wire.frames import BadFrame, ProviderError, error_in, parse_frame, stray_error
from toolonce.stream.wire.json_scan import TOO_DEEP, TOO_LARGE, Repeated
from toolonce.stream.wire.limits import TurnLimits

LIMITS = TurnLimits()
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
numbers = st.from_regex(r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)


@given(json_values, st.booleans())
def test_a_frame_is_what_the_standard_reader_says(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    try:
        text.decode()
    except UnicodeDecodeError:
        return

    assert repr(parse_frame(text, LIMITS)) == repr(json.loads(text))


@given(numbers)
def test_every_number_is_read_to_the_same_value(number: str) -> None:
    assert repr(parse_frame(f"[{number}]".encode(), LIMITS)) == repr(json.loads(f"[{number}]"))


@given(st.text(alphabet='{}[]:,"\\ u0123eE+-.truefalsnNIity\n\x00\x7f\u00e9', max_size=25))
def test_both_ways_agree_on_what_is_json(text: str) -> None:
    try:
        expected: Any = json.loads(text)
    except ValueError:
        with pytest.raises(BadFrame):
            parse_frame(text.encode(), LIMITS)
        return

    assert repr(parse_frame(text.encode(), LIMITS)) == repr(expected)


def test_what_an_argument_must_not_hold_is_marked() -> None:
    twice = parse_frame(b'{"a":{"b":1,"b":2}}', LIMITS)
    assert type(twice["a"]) is Repeated
    assert parse_frame(b"[%s]" % (b"9" * 5000), LIMITS) == [TOO_LARGE]
    deep: Any = parse_frame(b"[" * 5000 + b"]" * 5000, LIMITS)
    while isinstance(deep, list):
        deep = deep[0]
    assert deep is TOO_DEEP


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        ({"error": None}, None),
        ({"error": "busy"}, ProviderError(message="busy")),
        ({"choices": [], "error": {"code": 502, "message": "m"}}, ProviderError(message="m", status=502)),
        ({"error": {"type": "t", "code": None}}, ProviderError(code="t")),
        ({"type": "error", "code": "c", "message": "m"}, ProviderError(code="c", message="m")),
        ({"event_type": "error"}, ProviderError()),
        ([{"x": 1}, {"error": {"status": "S", "code": 7}}], ProviderError(code="S", status=7)),
        ({"type": "response.created"}, None),
        ("error", None),
    ],
)
def test_errors_in_every_known_shape(frame: Any, error: ProviderError | None) -> None:
    assert error_in(frame) == error


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (['{"error": {"message": "m"}}'], True),
        (["upstream failed", "{", '  "error": "m"', "}", "bye"], True),
        (['[{"error": {"code": 1}}]'], True),
        (['{"type": "error"}'], True),
        (["{", '  "error": "m"'], False),
        (["error: read ECONNRESET"], True),
        (['error:{"message": "m"}'], True),
        (["error: null"], False),
        (["error:"], False),
        (["errors: read ECONNRESET"], False),
        (["{not json", '{"error": 1}'], True),
        (['{"a": 1}'], False),
        (["[" * 9000], False),
    ],
)
def test_error_documents_among_lines_that_are_no_sse(lines: list[str], found: bool) -> None:
    assert (stray_error([line.encode() for line in lines]) is not None) is found
