"""Lines of JSON: cut at LF alone, the same however the bytes are chunked."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolonce.stream.wire.framing import WireEvent
from toolonce.stream.wire.limits import LimitPassed, TurnLimits
from toolonce.stream.wire.ndjson import NdjsonReader

TEXT = '\ufeff{"a": "x\u2028y\x85"}\r\n\n  \t\r\n{"b": 1}\n{"c"'.encode()


def read(pieces: list[bytes]) -> tuple[list[WireEvent], bool]:
    reader = NdjsonReader(TurnLimits())
    events = [event for piece in pieces for event in reader.feed(piece)]
    return [*events, *reader.end()], reader.bad_utf8


def test_a_line_ends_in_lf_and_nowhere_else() -> None:
    assert read([TEXT]) == (
        [(b"", '{"a": "x\u2028y\x85"}'.encode(), False), (b"", b'{"b": 1}', False), (b"", b'{"c"', False)], False
    )  # fmt: skip


@given(st.binary(max_size=60) | st.just(TEXT), st.lists(st.integers(0, 60), max_size=6))
def test_lines_are_the_same_in_pieces_of_any_size(data: bytes, places: list[int]) -> None:
    ends = [0, *sorted(places), len(data)]

    assert read([data[a:b] for a, b in itertools.pairwise(ends)]) == read([data])


def test_a_line_has_a_limit() -> None:
    reader = NdjsonReader(TurnLimits(line_bytes=10))
    list(reader.feed(b'{"a": 1}\n'))
    list(reader.feed(b'{"a": "'))
    with pytest.raises(LimitPassed, match="line_bytes"):
        list(reader.feed(b"xxxxxx"))
