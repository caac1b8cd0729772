"""Messages of the binary event stream: both checksums, the lengths, the headers, in pieces of any size."""

from __future__ import annotations

import itertools
from struct import pack
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stream.event_stream import event, exception, framed, header, message
from toolonce.stream.wire.event_stream import HEADER_BYTES, MESSAGE_BYTES, EventStreamReader
from toolonce.stream.wire.framing import WireEvent
from toolonce.stream.wire.limits import LimitPassed, TurnLimits

ONE = event("one", b'{"a":1}')
TWO = event("two", b"")


def read(*chunks: bytes) -> tuple[list[WireEvent], str | None]:
    reader = EventStreamReader(TurnLimits())
    found = [read for chunk in chunks for read in reader.feed(chunk)]
    return [*found, *reader.end()], reader.unreadable


@given(st.lists(st.binary(max_size=40), max_size=4), st.lists(st.integers(0, 400), max_size=8))
def test_messages_are_the_same_in_pieces_of_any_size(payloads: list[bytes], places: list[int]) -> None:
    data = b"".join(event("some", payload) for payload in payloads)
    ends = [0, *sorted(min(place, len(data)) for place in places), len(data)]

    found = read(*(data[a:b] for a, b in itertools.pairwise(ends)))

    assert found == ([(b"some", payload, False) for payload in payloads], None)
    assert found == read(data)


@given(st.integers(0, len(ONE) - 1), st.integers(1, 255), st.booleans())
def test_a_message_with_a_changed_byte_is_never_an_event_and_nothing_behind_it_is(
    at: int, change: int, bytewise: bool
) -> None:
    wrong = bytearray(ONE)
    wrong[at] ^= change
    data = bytes(wrong) + TWO
    found, unreadable = read(*(data[n : n + 1] for n in range(len(data)))) if bytewise else read(data)

    assert found == []
    assert unreadable or at < 4  # a longer length may still wait for the rest


def prelude(size: int, headers: int) -> bytes:
    numbers = pack("!II", size, headers)
    return numbers + pack("!I", crc32(numbers))


@pytest.mark.parametrize(
    "data",
    [prelude(15, 0), prelude(20, 5), prelude(MESSAGE_BYTES + 1, 0), prelude(HEADER_BYTES + 99, HEADER_BYTES + 1)],
)
def test_a_length_that_cannot_be_is_told_before_the_message_comes(data: bytes) -> None:
    assert read(TWO, data, b"x")[0] == [(b"two", b"", False)]
    assert "length" in (read(data)[1] or "")


@pytest.mark.parametrize(
    "block",
    [
        b"\x01",
        b"\x01a",
        b"\x01a\x07\x00\x05abc",
        b"\x01a\x0a",
        b"\x01a\x07\x00\x01\xff",
        header("a", "1") * 2,
        b"\x00\x00",
    ],
)
def test_headers_that_cannot_be_read_end_the_reading(block: bytes) -> None:
    found, unreadable = read(framed(block, b"{}"), ONE)

    assert found == []
    assert unreadable


def test_all_ten_types_of_headers_are_read_and_only_text_names_an_event() -> None:
    types = b"".join(
        b"\x01" + bytes([97 + kind, kind]) + value
        for kind, value in enumerate(
            (b"", b"", b"1", b"12", b"1234", b"12345678", b"\x00\x01\xff", b"\x00\x01x", b"12345678", b"1" * 16)
        )
    )

    assert read(framed(types + header(":event-type", "named"), b"x")) == ([(b"named", b"x", False)], None)
    assert read(framed(b"\x0b:event-type\x06\x00\x03one", b"x")) == ([(b"", b"x", False)], None)


def test_exceptions_and_errors_are_events_of_the_name_error_and_no_event_is() -> None:
    told = exception("throttlingException", {"message": "Slow down"})
    bare = message(b"", message_type="error", error_code="Gone", error_message="no more")
    named = event("error", b"{}")

    assert read(told, bare, named)[0] == [
        (b"error", b'{"code": "throttlingException", "message": "Slow down"}', False),
        (b"error", b'{"code": "Gone", "message": "no more"}', False),
        (b"", b"{}", False),
    ]


def test_a_message_beyond_the_limit_of_an_event_passes_it() -> None:
    reader = EventStreamReader(TurnLimits(event_bytes=20))

    with pytest.raises(LimitPassed, match="event_bytes"):
        list(reader.feed(ONE))
