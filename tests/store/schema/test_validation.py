"""What validating arguments costs and how exact it is; verdicts are compared with jsonschema's in `test_verdicts`."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from toolonce.store.model.outcomes import Failure
from toolonce.store.schema import validation
from toolonce.store.schema.engine import TooCostly
from toolonce.store.schema.patterns import Pattern, PatternRefused
from toolonce.store.schema.validation import Heavy, validate, validate_here
from toolonce.store.schema.verdict import STEPS, validate_in_steps

_LIST = {"type": "array", "items": {"$ref": "#/$defs/nest"}}
NEST: dict[str, Any] = {"properties": {"a": {"$ref": "#/$defs/nest"}}, "$defs": {"nest": {"anyOf": [_LIST, _LIST]}}}


def one(schema: dict[str, Any]) -> dict[str, Any]:
    """A tool's schema with one argument ``a``."""
    return {"type": "object", "properties": {"a": schema}, "additionalProperties": False}


def fits(schema: dict[str, Any], value: Any) -> bool:
    found = validate(one(schema), {"a": value})
    assert found is None or "cannot be validated" not in found.message
    return found is None


def code(schema: dict[str, Any], value: Any) -> str:
    found = validate(schema, {"a": value})
    return found.code if found else ""


def nested(levels: int, inner: Any = 1) -> Any:
    for _ in range(levels):
        inner = [inner]
    return inner


# Schema and argument of 64 kB and less; each took jsonschema from seconds to forever.
CHEAP: dict[str, tuple[dict[str, Any], Any]] = {
    "unique texts": ({"uniqueItems": True}, [f"{number}" for number in range(8_000)]),
    "unique mixed values": ({"uniqueItems": True}, [item for n in range(3_000) for item in (n, f"{n}", [n])]),
    "unique numbers of one hash": ({"uniqueItems": True}, [n * (2**61 - 1) for n in range(1, 4_000)]),
    "nested repeats in a pattern": ({"pattern": "^(a+)+$"}, "a" * 41 + "!"),
    "alternatives in a pattern": ({"pattern": "^(a|a)*$"}, "a" * 60_000 + "!"),
    "names against a pattern": ({"patternProperties": {"^(a+)+$": True}}, {"a" * 41 + f"{n}": n for n in range(500)}),
    "unevaluated members": ({"unevaluatedProperties": False, "allOf": [{}]}, {f"{n}": n for n in range(8_000)}),
    "unevaluated items": ({"unevaluatedItems": {"type": "integer"}}, list(range(12_000))),
    "many faults": ({"items": {"type": "integer"}}, ["x"] * 16_000),
    "a long constant": ({"enum": [list(range(1_000))]}, list(range(10_000))),
}  # fmt: skip


@pytest.mark.parametrize("name", CHEAP)
def test_64_kb_under_a_hostile_schema_is_judged_in_few_steps_where_it_is_asked(name: str) -> None:
    """faults 12"""
    schema, value = CHEAP[name]

    assert len(json.dumps(value)) <= 200_000
    assert not isinstance(validate_here(one(schema), {"a": value}), Heavy)


# Schema and argument whose cost multiplies.
COSTLY: dict[str, tuple[dict[str, Any], Any]] = {
    "choices inside choices": (NEST, nested(40)),
    "a million numbers and five choices": (
        one({"items": {"anyOf": [{"type": kind} for kind in ("string", "null", "object", "boolean", "integer")]}}),
        [1] * 1_000_000,
    ),
    "contains in contains": (
        one({"contains": {"contains": {"contains": {"const": "x"}}}}), [[list(range(200))] * 200] * 200,
    ),
    "a long text and a large pattern": (one({"pattern": "[ab]*a[ab]{900}c"}), "ab" * 750_000),
    "100,000 levels": (one({"items": {"$ref": "#/properties/a"}}), nested(100_000)),
    "a reference to itself": ({"$ref": "#"}, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", COSTLY)
def test_arguments_beyond_the_fixed_number_of_steps_are_refused(name: str) -> None:
    """faults 12"""
    assert code(*COSTLY[name]) == "too_costly"


@pytest.mark.parametrize("rules", [{}, {"minimum": 0, "maximum": 1e9}, {"enum": [1, 2, 3]}])
def test_a_megabyte_of_numbers_under_a_plain_schema_is_judged(rules: dict[str, Any]) -> None:
    """faults 12"""
    assert fits({"items": {"type": "integer", **rules}}, [1, 2, 3] * 116_000)


def test_the_same_arguments_take_the_same_steps_each_time() -> None:
    """faults 12"""
    schema, value = one({"items": {"enum": ["a", 1, [2]]}}), ["a", 1, [2]] * 50

    def least() -> int:
        return next(steps for steps in range(5_000) if _is_enough(schema, value, steps))

    assert least() == least()


def _is_enough(schema: dict[str, Any], value: Any, steps: int) -> bool:
    try:
        return validate_in_steps(schema, {"a": value}, steps) is None
    except TooCostly:
        return False


def test_a_level_that_python_cannot_reach_here_is_judged_in_the_child() -> None:
    schema = one({"items": {"$ref": "#/properties/a"}, "type": ["array", "integer"]})

    assert isinstance(validate_here(schema, {"a": nested(400)}), Heavy)
    assert validate(schema, {"a": nested(400)}) is None
    assert code(schema, nested(400, "x")) == "invalid_arguments"


ODD: dict[str, Any] = {
    "infinite": float("inf"),
    "no number": float("nan"),
    "a million digits": 10**1_000_000,
    "half a pair": "\ud800",
    "a tuple": (1, 2),
    "names of two types": {1: 2, "a": 1},
    "a set": {1, 2},
}


@pytest.mark.parametrize(
    ("rules", "value", "fit"),
    [
        ({"multipleOf": 0.01}, 10**400, True),
        ({"multipleOf": 0.01}, 10**400 + 1, True),
        ({"multipleOf": 0.3}, 10**400, False),
        ({"multipleOf": 7}, 7 * 10**400, True),
        ({"multipleOf": 7}, 7 * 10**400 + 1, False),
        ({"multipleOf": 0.1}, 0.3, True),
        ({"multipleOf": 0.1}, 0.35, False),
        ({"multipleOf": 0.01}, 19.99, True),
        ({"multipleOf": 1e-300}, 1e300, True),
        ({"multipleOf": 5e-324}, 1.7e308, True),
        ({"multipleOf": 1e300}, 1, False),
        ({"maximum": 1e23}, 10**23, True),
        ({"exclusiveMaximum": 1e23}, 10**23, False),
        ({"maximum": 1e308}, 10**400, False),
        ({"minimum": 0.1}, 0.1, True),
        ({"enum": [1e23]}, 10**23, True),
        ({"const": 1}, 1.0, True),
        ({"const": 1}, True, False),
        ({"uniqueItems": True}, [1, 1.0], False),
        ({"uniqueItems": True}, [1, True], True),
        ({"uniqueItems": True}, [{"a": 1, "b": [2.0]}, {"b": [2], "a": 1}], False),
        ({"uniqueItems": True}, ["1", 1, [1], {"1": 1}, None, "None", False, 0], True),
    ],
)
def test_numbers_are_judged_as_the_decimals_that_were_written(rules: dict[str, Any], value: Any, fit: bool) -> None:
    """faults 11"""
    assert fits(rules, value) is fit


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize(
    "rules",
    [
        {"multipleOf": 0.01},
        {"pattern": "^a$"},
        {"uniqueItems": True},
        {"enum": [1]},
        {"patternProperties": {"b": False}},
    ],
)
def test_no_value_that_python_can_hold_makes_validation_raise(rules: dict[str, Any], kind: str) -> None:
    """faults 11"""
    assert isinstance(validate(one(rules), {"a": ODD[kind]}), Failure | None)


def test_whatever_fails_while_arguments_are_judged_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """faults 11"""
    monkeypatch.setattr("toolonce.store.schema.engine.Node.test", lambda *_: 1 / 0)
    found = validate(one({}), {"a": "the secret"})

    assert found is not None
    assert (found.code, "ZeroDivisionError" in found.message) == ("invalid_arguments", True)


@pytest.mark.parametrize(
    ("pattern", "text", "fit"),
    [
        ("^a$", "a\n", False),
        (r"^\d+$", "\u0664", False),
        (r"^\w+$", "\u00e9", False),
        (r"^\W$", "\u00e9", True),
        (r"^\s$", "\ufeff", True),
        (r"^[\s]$", "\u2028", True),
        (r"^[\S]$", "\u00a0", False),
        (r"^\S+$", "x\u00e9\U0001f600", True),
        ("^.$", "\u2028", False),
        ("^.$", "\U0001f600", True),
        (r"^[\u4e00-\u9fa5]+$", "\u4e2d\u6587", True),
        (r"^\ud83d\ude00$", "\U0001f600", True),
        (r"^\u{1f600}$", "\U0001f600", True),
        (r"^\cA$", "\x01", True),
        (r"^\p{Letter}+$", "\u00e9a", True),
        (r"^\p{Script=Greek}$", "\u03b1", True),
        (r"^a\/b\-c$", "a/b-c", True),
        ("[[:alpha:]]", "x", False),
        ("b", "abc", True),
        ("^[]$", "]", False),
        ("^[^]$", "\n", True),
        ("a", "\ud800a", True),
    ],
)  # fmt: skip
def test_patterns_mean_what_ecma_262_says(pattern: str, text: str, fit: bool) -> None:
    """faults 12"""
    assert Pattern(pattern).matches(text) is fit


@pytest.mark.parametrize(
    "pattern", ["(?=a)b", "(?<!a)b", r"(a)\1", "a{1,2000}", "((a{100}){100}){100}", "(", r"\C", "a++"]
)
def test_a_pattern_that_has_no_bound_is_refused_with_a_way_out(pattern: str) -> None:
    """faults 12"""
    with pytest.raises(PatternRefused, match=r"minLength and maxLength|ECMA-262 does not know"):
        Pattern(pattern)


def test_a_child_that_is_killed_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """faults 12"""
    monkeypatch.setattr(validation, "_CHILD", "import os; os.kill(os.getpid(), 9)")

    assert code(*COSTLY["a million numbers and five choices"]) == "too_costly"


def test_where_no_child_can_be_started_the_same_is_judged_in_the_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """faults 12"""
    monkeypatch.setattr(validation, "_interpreter", lambda: os.devnull)

    assert fits({"items": {"type": "integer", "minimum": 0}}, [1] * 200_000)
    assert code(*COSTLY["choices inside choices"]) == "too_costly"
    assert "no process to validate" in caplog.text


def test_of_very_many_faults_the_first_are_told() -> None:
    found = validate(one({"items": {"type": "integer"}}), {"a": ["x"] * 10_000})

    assert found is not None
    assert len(found.details["errors"]) == 5
    assert "(and many more)" in found.message
    assert STEPS == 4_000_000  # said in docs/benchmarks.md
