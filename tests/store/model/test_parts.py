"""Rich results survive the store, and ordinary values are never taken for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolonce.store.model.parts import FilePart, ImagePart, JsonPart, Parts, TextPart


@pytest.mark.parametrize(
    "parts",
    [
        Parts(()),
        Parts((TextPart(""), JsonPart(None), JsonPart(9007199254740993))),
        Parts((ImagePart.from_bytes("image/png", b"\x89PNG"), FilePart("application/pdf", url="https://e.test/a.pdf"))),
        Parts((FilePart.from_bytes("text/csv", b"a,b", name="table.csv"),), is_error=True),
    ],
)
def test_parts_come_back_equal_from_their_stored_form(parts: Parts) -> None:
    assert Parts.find(json.loads(json.dumps(parts.to_json()))) == parts


@pytest.mark.parametrize(
    "value",
    [
        None,
        0,
        [],
        "$parts",
        {},
        {"is_error": True},
        {"$parts": "x"},
        {"$parts": [], "more": 1},
        {"$parts": [], "is_error": "yes"},
        {"$parts": [{"type": "text"}]},
        {"$parts": [{"type": "text", "text": "a", "more": 1}]},
        {"$parts": [{"type": "image", "media_type": "image/png"}]},
        {"$parts": [{"type": "file", "media_type": "a/b", "data": "", "url": ""}]},
        {"$parts": [{"type": "sound"}]},
    ],
)
def test_a_value_that_only_resembles_parts_stays_an_ordinary_value(value: Any) -> None:
    assert Parts.find(value) is None


def test_a_media_part_holds_one_source() -> None:
    with pytest.raises(ValueError, match="either data or a url"):
        ImagePart("image/png")


@pytest.mark.parametrize("content", [b"", b"a", b"ab", b"abc", b"abcd"])
def test_the_size_of_a_media_part_is_that_of_its_bytes(content: bytes) -> None:
    assert FilePart.from_bytes("a/b", content).size == len(content)
