"""What makes two calls the same call: order and spelling of JSON never do, type and content always do."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolonce.store.model import identity
from toolonce.store.model.identity import (
    call_key,
    canonical,
    digest,
    fingerprint,
    idempotency_key,
    intent_call_key,
    raw_fingerprint,
    references,
    turn_key,
)

TEXTS = st.text(max_size=8) | st.sampled_from(["", "\x00", "a\nb", "é", "e\u0301", "\U0001f600", "\ud800"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4))


def shuffled(value: Any, chance: random.Random) -> Any:
    """The same JSON value with the members of each object in another order."""
    if isinstance(value, dict):
        names = list(value)
        chance.shuffle(names)
        return {name: shuffled(value[name], chance) for name in names}
    return [shuffled(item, chance) for item in value] if isinstance(value, list) else value


def meaning(value: Any) -> Any:
    """A value that is equal for two JSON values exactly where identity must be: exact numbers, types kept apart."""
    match value:
        case bool() | None:
            return ("word", value)
        case int() | float():
            return ("number", value)  # Python compares int and float exactly
        case dict():
            return ("object", frozenset((name, meaning(item)) for name, item in value.items()))
        case list():
            return ("array", tuple(meaning(item) for item in value))
        case _:
            return ("text", value)


@given(JSON, st.randoms(use_true_random=False))
def test_the_order_of_members_has_no_influence_at_any_depth(value: Any, chance: random.Random) -> None:
    assert canonical(shuffled(value, chance)) == canonical(value)


@given(JSON)
def test_the_canonical_form_is_read_as_the_same_value(value: Any) -> None:
    assert meaning(json.loads(canonical(value))) == meaning(value)


@given(JSON, JSON)
def test_two_values_share_a_form_exactly_when_they_are_the_same_json(one: Any, other: Any) -> None:
    assert (canonical(one) == canonical(other)) == (meaning(one) == meaning(other))


@given(JSON)
def test_the_spelling_of_the_text_has_no_influence(value: Any) -> None:
    loose = json.loads(json.dumps(value, ensure_ascii=True, indent=3))
    tight = json.loads(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    assert fingerprint("t", loose) == fingerprint("t", tight) == fingerprint("t", value)


def test_equal_looking_values_of_other_types_are_kept_apart() -> None:
    one, *others = (canonical({"n": value}) for value in (1, True, "1", [1], None, 1.5, {"n": 1}))
    assert canonical({"n": 1.0}) == one
    assert len({one, *others}) == 7
    assert canonical(-0.0) == canonical(0) == "0"
    assert canonical(False) != canonical(0) != canonical("") != canonical(None)


@pytest.mark.parametrize("digits", [16, 18, 40, 5000])
def test_integers_are_exact_at_any_size(digits: int) -> None:
    base = 10**digits
    assert len({canonical(base + step) for step in range(-2, 3)}) == 5


def test_members_are_ordered_as_rfc_8785_says_by_utf_16_code_units() -> None:
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    ordered = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(canonical(dict.fromkeys(names, 0)))) == ordered


def test_unicode_is_not_normalised() -> None:
    assert fingerprint("t", {"q": "é"}) != fingerprint("t", {"q": "e\u0301"})


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        ({1: 2}, TypeError),
        ({1, 2}, TypeError),
        (b"x", TypeError),
    ],
)
def test_what_is_not_json_is_refused(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        canonical([value])


@given(st.lists(TEXTS, max_size=4), st.lists(TEXTS, max_size=4))
def test_parts_cannot_run_into_each_other(one: list[str], other: list[str]) -> None:
    assert (digest(*one) == digest(*other)) == (one == other)


def test_no_two_neighbouring_parts_of_a_call_can_be_shifted_into_each_other() -> None:
    keys = [
        call_key("n", "t1", "x", "1"),
        call_key("n", "t1:x", "1", ""),
        call_key("n", "t", "1x", "1"),
        call_key("n", "t1x", "", "1"),
        call_key("nt", "1", "x", "1"),
        intent_call_key("n", "t1", "x"),
        turn_key("n", "t1", "x"),
        *(call_key("n", "s", "t", ref) for ref in references(["a:1", "a 1", "a\n1", "a\x001", "a"])),
        fingerprint("pay", "out9"),
        fingerprint("payo", "ut9"),
        raw_fingerprint("pay", '"out9"'),
    ]
    assert len(set(keys)) == len(keys)


def test_namespace_scope_and_turn_are_part_of_the_key() -> None:
    keys = {call_key(*parts) for parts in itertools.product("ab", repeat=4)}
    assert len(keys) == 16


def test_equal_ids_of_one_turn_are_told_apart_and_a_missing_id_counts_as_one_id() -> None:
    refs = references(["a", "a", None, "", None, "b"])
    assert len(set(refs)) == 6
    assert references(["x", "a", "b", "a"])[1::2] == references(["a", "a"])
    assert references([None])[0] != references([""])[0] != references(["-"])[0]


def test_an_id_may_hold_what_separates_parts_without_being_taken_for_another() -> None:
    assert len(set(references(["a\n1", "a", "a\n2", "a"]))) == 4


def test_a_keyed_fingerprint_depends_on_the_key_and_an_unkeyed_one_differs() -> None:
    prints = {fingerprint("t", {"pin": 1}, key) for key in (None, b"one", b"two", b"")}
    assert len(prints) == 4


def test_the_idempotency_key_is_a_valid_rq_job_id_of_fixed_length() -> None:
    key = idempotency_key(call_key("n", "s" * 10_000, "t", "+\n1"), fingerprint("t", {}))
    assert len(key) == 65
    assert key.replace("-", "").isalnum()


def test_the_forms_of_version_1_never_change() -> None:
    """These were computed when the version was made. A change here breaks every stored record: make a new version."""
    assert call_key("toolonce", "scope", "turn", references(["call_1"])[0]) == CALL_KEY
    assert intent_call_key("toolonce", "scope", "run-7/2/0") == INTENT_KEY
    assert fingerprint("pay", {"b": [1.0, True, None], "a": "é"}) == FINGERPRINT
    assert fingerprint("pay", {}, b"key") == KEYED


CALL_KEY = "5142ffe8665fd8b5d4d4a1308b13c531"
INTENT_KEY = "cbcee661659028a1b81e305e5477e2d9"
FINGERPRINT = "cef24d0549dd111695a6d7727cdddd6d"
KEYED = "56d6f16fcdf2ae7ac6d5cf52aa959daf"


def test_names_of_any_length_are_not_kept_in_memory() -> None:
    before = identity._cached.cache_info().currsize
    for at in range(20):
        identity.fingerprint(f"{at}" * 1000, {})
        identity.call_key("toolonce", f"{at}" * 1000, "turn", "ref")
    assert identity._cached.cache_info().currsize == before
