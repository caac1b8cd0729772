"""Server-sent events by the WHATWG rules, and what providers send beside them."""

from __future__ import annotations

import pytest

from toolonce.stream.wire.limits import LimitPassed, TurnLimits
from toolonce.stream.wire.sse import SseReader


def events(*chunks: bytes, limits: TurnLimits | None = None) -> list[tuple[str, str]]:
    reader = SseReader(limits or TurnLimits())
    found = [event for chunk in chunks for event in reader.feed(chunk)]
    found += reader.end()
    return [(name.decode(), data.decode()) for name, data, _ in found]


@pytest.mark.parametrize(
    ("data", "want"),
    [
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [("", "YHOO\n+2\n10")]),  # the examples of the standard
        (b": test stream\n\ndata: first\nid: 1\n\ndata:second\nid\n\n", [("", "first"), ("", "second")]),
        (b"data\n\ndata\ndata\n\n", [("", ""), ("", "\n")]),
        (b"data:test\n\ndata: test\n\n", [("", "test"), ("", "test")]),
        (b"data:  two\n\n", [("", " two")]),
        (b"event: add\ndata: 1\n\ndata: 2\n\n", [("add", "1"), ("", "2")]),
        (b"event: lost\n\ndata: 1\n\n", [("", "1")]),
        (b"event: a\nevent: b\ndata: 1\n\n", [("b", "1")]),
        (b"data: 1\r\ndata: 2\rdata: 3\n\r\n", [("", "1\n2\n3")]),
        (b"data: 1\r\rdata: 2\r\r", [("", "1"), ("", "2")]),
        ("data: a\u2028b\u0085c\x0b\x0cd\n\n".encode(), [("", "a\u2028b\u0085c\x0b\x0cd")]),
        (b"\xef\xbb\xbfdata: 1\n\n", [("", "1")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: 1\n\ndata: 2\n\n", [("", "2")]),
        (b"retry: 5\n: x\ndata: 1\nother: y\n\n", [("", "1")]),
        (b"data: 1\n\ndata: 2", [("", "1"), ("", "2")]),
        (b"data: 1\n", [("", "1")]),
    ],
)  # fmt: skip
def test_events_in_one_piece_and_byte_by_byte(data: bytes, want: list[tuple[str, str]]) -> None:
    assert events(data) == want
    assert events(*(data[at : at + 1] for at in range(len(data)))) == want


def test_a_line_feed_after_a_carriage_return_in_the_next_chunk_ends_no_second_line() -> None:
    assert events(b"data: 1\r", b"\ndata: 2\r", b"\n", b"\r", b"\n") == [("", "1\n2")]


def test_bytes_that_are_not_utf8_are_told_and_stand_as_replacement_characters() -> None:
    reader = SseReader(TurnLimits())
    found = list(reader.feed(b"data: ok\n\ndata: \xff\n\ndata: ok\n\n"))

    assert [(data.decode(), damaged) for _, data, damaged in found] == [("ok", False), ("\ufffd", True), ("ok", False)]
    assert reader.bad_utf8


@pytest.mark.parametrize(("tail", "bad"), [(b"data: \xe2\x82", False), (b"data: \xe2x", True), (b": \xff", True)])
def test_a_character_that_is_cut_by_the_end_is_not_wrong(tail: bytes, bad: bool) -> None:
    ended, broken = SseReader(TurnLimits()), SseReader(TurnLimits())
    for reader in (ended, broken):
        assert list(reader.feed(tail)) == []
    list(ended.end())
    broken.broken()

    assert ended.bad_utf8 is bad
    assert broken.bad_utf8 is bad


def test_a_transport_that_breaks_inside_too_long_an_event_raises_nothing() -> None:
    reader = SseReader(TurnLimits(event_bytes=20))
    assert list(reader.feed(b"data: 123456789\ndata: 123456789")) == []

    reader.broken()

    assert reader.stray == []


def test_lines_that_are_no_sse_are_kept_up_to_their_limit() -> None:
    reader = SseReader(TurnLimits(stray_bytes=20))
    list(reader.feed(b'{\n "error": 1\n}\nupstream failed badly here\nmore\n'))

    assert reader.stray == [b"{", b' "error": 1', b"}", b"upstream failed badly here"]


def test_a_line_that_is_too_long_stops_the_reading_however_it_comes() -> None:
    limits = TurnLimits(line_bytes=10)
    data = b"data: 1\n\ndata: 12345678\n\n"
    for pieces in ([data], [data[at : at + 1] for at in range(len(data))]):
        reader = SseReader(limits)
        found = (event for piece in pieces for event in reader.feed(piece))

        assert next(found) == (b"", b"1", False)
        with pytest.raises(LimitPassed, match="line_bytes"):
            next(found)


def test_an_event_that_is_too_long_stops_the_reading() -> None:
    with pytest.raises(LimitPassed, match="event_bytes"):
        events(b"data: 123456\n" * 20, limits=TurnLimits(event_bytes=100))
    assert len(events(b"data: 123456\n\n" * 20, limits=TurnLimits(event_bytes=100))) == 20
