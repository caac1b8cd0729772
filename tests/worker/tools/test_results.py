"""Whatever a handler returns is a success: stored exactly, or as well as it can be and marked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from toolonce.store.model.parts import Parts, TextPart
from toolonce.worker.tools.results import encode


class Colour(Enum):
    RED = "red"


class Model(BaseModel):
    price: Decimal


@dataclass
class DatedRow:
    day: date


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_json_is_stored_exactly_and_unmarked(value: Any) -> None:
    text, marks = encode(value)

    assert json.loads(text) == value
    assert marks == ""


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (Model(price=Decimal("1.10")), {"price": "1.10"}),
        (DatedRow(date(2030, 1, 2)), {"day": "2030-01-02"}),
        (Colour.RED, "red"),
        ((1, 2), [1, 2]),
        (Parts((TextPart("a"),)), {"$parts": [{"type": "text", "text": "a"}]}),
    ],
    ids=repr,
)
def test_types_with_a_json_form_are_stored_in_it_unmarked(value: Any, stored: Any) -> None:
    text, marks = encode(value)

    assert (json.loads(text), marks) == (stored, "")


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError


CYCLE: list[Any] = []
CYCLE += [CYCLE, CYCLE]


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        [float("inf")],
        {1, 2},
        b"\xff",
        object(),
        Unprintable(),
        [Unprintable()],
        CYCLE,
        "\ud800",
        int,
    ],
)
def test_what_is_no_json_is_a_success_with_a_mark(value: Any) -> None:
    text, marks = encode(value)

    json.loads(text, parse_constant=pytest.fail)
    text.encode()
    assert json.loads(marks) == {"lossy": True}


@pytest.mark.parametrize(
    "value",
    ["é" * 500, "\0" * 500, "\ud800" * 500, [1] * 500, {"a": "x" * 1000}],
    ids=["text", "control characters", "surrogates", "list", "object"],
)
def test_what_is_too_large_is_a_success_that_says_how_large_it_was(value: Any) -> None:
    text, marks = encode(value, limit=400)

    told = json.loads(marks)
    assert len(text.encode()) <= 400
    assert isinstance(json.loads(text), str)
    assert told["truncated"] is True
    assert told["size"] > 400
    assert len(told["sha256"]) == 64
