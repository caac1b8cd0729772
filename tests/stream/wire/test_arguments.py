"""The strict judgement of argument texts: one right word for every text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolonce.stream.wire.arguments import Unusable, check_value, decode_free_text, decode_pieces, decode_text
from toolonce.stream.wire.json_scan import CutText, NotJson, SecondObject, scan
from toolonce.stream.wire.limits import TurnLimits

LIMITS = TurnLimits()


def word(text: str) -> str:
    try:
        decoded = decode_text(text, LIMITS)
    except Unusable as damage:
        return str(damage)
    return decoded.reason or "good"


CUT = "an argument text is cut"
TWO = "two objects in one argument text"
WORDS = {
    "good": [
        "", "null", " null\n",
        "{}", ' \n{"a": [1, {"b": null}]}\t', '{"a": 1e308}', '{"": -0}', '{"\\u0061": "\\ud83d\\ude00"}',
    ],
    CUT: [
        " ", "{", '{"', '{"a', '{"a"', '{"a":', '{"a": ', '{"a":1', '{"a":1,', '{"a":-', '{"a":1.',
        '{"a":1e', '{"a":1e+',
        '{"a":"x\\', '{"a":"x\\u', '{"a":"\\ud83', '{"a":"\\ud83d', '{"a":tr', '{"a":n', '{"a":[', '{"a":[1',
        '{"a":[1,',
        '{"a":{}', '{"a":[{}]', '"x', "tru", "-", "1.", "[", "N", "-Inf", '{"a":' * 9000,
    ],
    TWO: ["{}{}", '{"a":1}{', "{} {", '{"a":1}\n{"b":2}', "{}{not json"],
    "invalid_json": [
        "{a:1}", "{'a':1}", '{"a":1,}', '{"a":1}x', '{"a":1}}', '{"a":1},{"b":2}', "[1]{}", '{"a":01}', '{"a":+1}',
        '{"a":.5}',
        '{"a":1.e5}', '{"a":"\x01"}', '{"a":"\\x"}', '{"a":"\\ud83x"}', '{"a" 1}', '{"a":1 "b"}', "{,}", "{]",
        "\ufeff{}",
        '{"a":truE}', "nulL", '{"a":[1,]}', '{"a":/*x*/1}', "x", "{}x{", '{"a":Nan}', '{"a":1}\x00', '{"a":\u00a01}',
    ],
    "not_an_object": ["[]", "1", '"x"', '"{}"', "true", "-0.5", " [1] "],
    "duplicate_key": ['{"a":1,"a":1}', '{"x":[{"a":1,"\\u0061":2}]}'],
    "non_finite": ['{"a":NaN}', '{"a":[-Infinity]}', '{"a":1e400}', '{"a":-1e999}'],
    "lone_surrogate": ['{"a":"\\ud83d"}', '{"\\ude00":1}', '{"a":"\\ude00\\ud83d"}', '{"a":"\ud83d"}'],
    "too_large": ['{"a":' + "9" * 4301 + "}", '{"a":-' + "9" * 4301 + "}"],
    "too_deep": [
        '{"a":' * 101 + "1" + "}" * 101, '{"a":' + "[" * 100 + "]" * 100 + "}", '{"a":' + "[" * 9000 + "]" * 9000 + "}",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("want", "text"), [(want, text) for want, texts in WORDS.items() for text in texts])
def test_every_text_has_its_word(want: str, text: str) -> None:
    assert word(text) == want


@pytest.mark.parametrize(
    ("want", "text"),
    [
        ("good", '{"a":' * 100 + "1" + "}" * 100),
        ("good", '{"a":-' + "9" * 4300 + "}"),
        ("too_deep", '{"a":' * 101 + "9" * 5000 + "}" * 101),
        ("too_large", '[{"a":1,"a":' + "9" * 5000 + "}]"),
        ("not_an_object", '[{"a":1,"a":NaN}]'),
        ("duplicate_key", '{"a":NaN,"a":"\\ud83d"}'),
        ("non_finite", '{"a":1e999,"b":"\\ud83d"}'),
        ("invalid_json", '{"a":' + "[" * 9000 + "]" * 9000 + ",}"),
        (CUT, '{"a":1,"a":' + "[" * 9000),
    ],
)
def test_at_the_limits_and_in_the_order_of_the_policy(want: str, text: str) -> None:
    assert word(text) == want


def test_integers_are_exact_and_floats_stay_floats() -> None:
    decoded = decode_text('{"a":9007199254740993,"b":3.0,"c":-0,"d":1E2}', LIMITS)

    assert repr(decoded.value) == "{'a': 9007199254740993, 'b': 3.0, 'c': 0, 'd': 100.0}"


def test_a_surrogate_pair_in_two_fragments_is_one_character() -> None:
    assert decode_pieces(['{"a":"\ud83d', '\ude00"}'], LIMITS).value == {"a": "\U0001f600"}
    assert decode_free_text(["\ud83d", "\ude00"]).value == "\U0001f600"
    assert decode_free_text(["\ude00", "\ud83d"]).reason == "lone_surrogate"


def test_an_object_from_a_frame_is_judged_by_the_same_words() -> None:
    assert check_value({"a": float("inf")}, LIMITS).reason == "non_finite"
    assert check_value([{"a": "\ud83d"}], LIMITS).reason == "not_an_object"
    assert check_value({"a": 1}, LIMITS).text == '{"a": 1}'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(json_values, st.booleans(), st.sampled_from([None, 2]))
def test_the_scanner_reads_what_the_standard_reader_reads(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)

    assert repr(scan(text, 1000, 4300)) == repr(json.loads(text))


@given(st.dictionaries(st.text(), json_values, max_size=4), st.booleans(), st.data())
def test_every_beginning_of_a_text_is_cut(value: Any, ascii_only: bool, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    at = data.draw(st.integers(1, len(text) - 1))

    assert word(text[:at]) == CUT


@given(st.text(alphabet='{}[]:,"\\ u0123eE+-.truefalsnNIity\n', max_size=30))
def test_the_scanner_and_the_standard_reader_agree_on_what_is_json(text: str) -> None:
    try:
        scanned: Any = scan(text, 1000, 4300)
    except (CutText, NotJson, SecondObject):
        scanned = "refused"
    try:
        read: Any = json.loads(text)
    except ValueError:
        read = "refused"

    assert repr(scanned) == repr(read)
