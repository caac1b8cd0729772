"""One JSON array of objects as a stream: its elements in any pieces, what is wrong with it, and what it costs."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stream.transcripts import single_bytes
from toolonce.stream.wire.json_array import ArrayOrEvents, JsonArrayReader
from toolonce.stream.wire.limits import LimitPassed, TurnLimits

TEXTS = st.text(st.sampled_from('ab"\\{}[],: \n\té東\U0001f600'), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
ELEMENTS = st.lists(st.dictionaries(TEXTS, VALUES, max_size=3), max_size=4)


def read(data: bytes, pieces: list[bytes] | None = None, *, broken: bool = False) -> JsonArrayReader:
    reader = JsonArrayReader(TurnLimits())
    for piece in pieces or [data]:
        list(reader.feed(piece))
    reader.broken() if broken else list(reader.end())
    return reader


@given(ELEMENTS, st.booleans(), st.sampled_from([None, 1, 2]), st.lists(st.integers(0, 400), max_size=8))
def test_the_elements_are_those_of_the_array_in_any_pieces(
    elements: list[dict[str, Any]], plain: bool, indent: int | None, places: list[int]
) -> None:
    data = b" \r\n" + json.dumps(elements, ensure_ascii=plain, indent=indent).encode() + b"\n"
    cuts = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    reader = JsonArrayReader(TurnLimits())
    found = [event for a, b in itertools.pairwise(cuts) for event in reader.feed(data[a:b])]

    assert [json.loads(element) for _, element, _ in found] == elements
    assert (reader.ended, reader.unreadable, reader.bad_utf8) == (True, None, False)


@pytest.mark.parametrize(
    "data",
    [b"[1]", b"[{} {}]", b"[{},]", b"[,{}]", b"[{},,{}]", b"[[{}]]", b'["{}"]', b"[null]", b"[}", b"[{}}", b"[{}]]",
     b"[{}][", b"[]{}", b"[{}]x", b"[{}]\x00", b"[{}\xff]", b"[{}] \xc2\xa0"],
)  # fmt: skip
def test_what_is_no_array_of_objects_is_told_in_any_pieces(data: bytes) -> None:
    whole = read(data)

    assert whole.unreadable is not None
    assert read(data, list(single_bytes(data))).unreadable == whole.unreadable
    assert read(data + b',{}]{"a":1}').unreadable == whole.unreadable


@pytest.mark.parametrize(
    "data", [b"", b" ", b"[", b"[{}", b"[{},", b'[{"a":"}]', b'[{"a":"\\', b"[{}, \n", b'[{"a":[{}']
)
def test_an_array_without_its_bracket_is_cut_and_not_wrong(data: bytes) -> None:
    for reader in (read(data), read(data, list(single_bytes(data)), broken=True)):
        assert (reader.ended, reader.unreadable, reader.bad_utf8) == (False, None, False)


@pytest.mark.parametrize("broken", [True, False])
def test_wrong_bytes_are_told_also_of_an_element_that_was_cut_and_a_cut_character_is_not_wrong(broken: bool) -> None:
    assert read(b'[{"a":"\xff', broken=broken).bad_utf8
    assert read(b'[{"a":"\xff"},', broken=broken).bad_utf8
    assert not read('[{"a":"東'.encode()[:-1], broken=broken).bad_utf8


def test_the_lines_behind_what_is_no_array_are_kept_up_to_their_limit() -> None:
    reader = JsonArrayReader(TurnLimits(stray_bytes=20))
    for piece in single_bytes(b'[{}]\n{"error":\n1}\nand much more of it'):
        list(reader.feed(piece))

    assert reader.stray == [b'{"error":', b"1}", b"and muc"]


@pytest.mark.parametrize("levels", [1, 2, 6, 7, 8, 9, 300])
def test_an_element_of_any_depth_ends_at_its_own_brace(levels: int) -> None:
    element = b'{"}\\"":' * levels + b'"{\\\\"' + b', "[": "]"}' * levels
    data = b"[" + element + b"," + element + b"]"
    for pieces in ([data], list(single_bytes(data)), [data[:9], data[9:]]):
        reader = JsonArrayReader(TurnLimits())
        found = [event for piece in pieces for event in reader.feed(piece)]

        assert [text for _, text, _ in found] == [element, element]
        assert (reader.ended, reader.unreadable) == (True, None)


def test_an_element_has_a_limit_and_the_array_has_none() -> None:
    limits = TurnLimits(event_bytes=20)
    assert len(list(JsonArrayReader(limits).feed(b"[" + b'{"a":"0123456789"},' * 50))) == 50
    with pytest.raises(LimitPassed, match="event_bytes"):
        list(JsonArrayReader(limits).feed(b'[{"a":"' + b"0" * 20))


@pytest.mark.parametrize("head", [b"", b"\xef\xbb\xbf", b" ", b"\n\n ", b"\xef\xbb\xbf\r\n", b"\xef\xbb\xbf \t\r"])
@pytest.mark.parametrize(("body", "array"), [(b"[{}]", True), (b'data: {"a":1}\n\n', False), (b"{}", False)])
def test_the_first_character_tells_an_array_from_events(head: bytes, body: bytes, array: bool) -> None:
    for pieces in ([head + body], list(single_bytes(head + body))):
        framing = ArrayOrEvents(TurnLimits())
        found = [event for piece in pieces for event in framing.feed(piece)]
        found += framing.end()
        spoiled = body.startswith(b"data") and head[-1:] in (b" ", b"\t")  # a field of the name " data"
        assert [data for _, data, _ in found] == (
            [b"{}"] if array else [] if spoiled or body == b"{}" else [b'{"a":1}']
        )
        assert framing.ended is (True if array else None)


def test_blanks_before_the_first_character_are_not_gathered() -> None:
    framing = ArrayOrEvents(TurnLimits())
    for _ in range(1000):
        list(framing.feed(b" \n" * 500))
    assert len(framing._head) < 8

    assert [data for _, data, _ in framing.feed(b"[{}]")] == [b"{}"]
