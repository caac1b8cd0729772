"""Our verdicts are those of the library jsonschema, where that one is exact and comes to an end.

Left out on purpose: decimals that binary floats cannot hold, and patterns that Python and ECMA-262 read differently.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from toolonce.store.schema.validation import check_schema, validate

NAMES = st.sampled_from(["a", "b", "ab", "c"])
TEXTS = st.sampled_from(["", "a", "b", "ab", "ba", "aab", "1", "\u00e9"])
PATTERNS = st.sampled_from(["^a", "b$", "a+b", "^(a|b)*$", "[^a]", "^.?$"])
NUMBERS = st.one_of(st.integers(-4, 4), st.sampled_from([0.0, 1.0, 2.0, 0.5, -1.5, 2.5]), st.just(10**12))
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=10,
)
COUNTS = st.integers(0, 3)
KINDS = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
REFERENCES = st.sampled_from(["#/$defs/one", "#/$defs/two"])
DIVISORS = st.sampled_from([1, 2, 3, 0.5, 1.5])


def keywords(inner: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[Any]]:
    several = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(NAMES, inner, max_size=3)
    return {
        "type": KINDS | st.lists(KINDS, min_size=1, max_size=3, unique=True),
        "enum": st.lists(VALUES, max_size=4), "const": VALUES, "multipleOf": DIVISORS,
        "minimum": NUMBERS, "maximum": NUMBERS, "exclusiveMinimum": NUMBERS, "exclusiveMaximum": NUMBERS,
        "minLength": COUNTS, "maxLength": COUNTS, "minItems": COUNTS, "maxItems": COUNTS,
        "minProperties": COUNTS, "maxProperties": COUNTS, "pattern": PATTERNS, "uniqueItems": st.booleans(),
        "required": st.lists(NAMES, max_size=3, unique=True),
        "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True), max_size=2),
        "properties": named, "patternProperties": st.dictionaries(PATTERNS, inner, max_size=2),
        "additionalProperties": inner, "propertyNames": inner, "dependentSchemas": named,
        "items": inner, "prefixItems": several, "contains": inner, "minContains": COUNTS, "maxContains": COUNTS,
        "allOf": several, "anyOf": several, "oneOf": several, "not": inner, "if": inner, "then": inner, "else": inner,
        "unevaluatedItems": inner, "unevaluatedProperties": inner, "$ref": REFERENCES, "format": st.just("date"),
    }  # fmt: skip


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas of a few keywords each."""
    known = keywords(inner)
    chosen = st.lists(st.sampled_from(sorted(known)), max_size=4, unique=True)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: known[name] for name in names}))


SCHEMAS = st.recursive(st.booleans() | KINDS.map(lambda kind: {"type": kind}), objects, max_leaves=12)
PLAIN = st.recursive(st.booleans(), objects, max_leaves=4).filter(lambda schema: "$ref" not in repr(schema))
ROOTS = st.builds(
    lambda schema, one, two: {**(schema if isinstance(schema, dict) else {"allOf": [schema]}), "$defs": {
        "one": one, "two": {"anyOf": [two, {"type": "array", "items": {"$ref": "#/$defs/two"}}]},
    }},
    SCHEMAS, PLAIN, PLAIN,
)  # fmt: skip


@given(ROOTS, VALUES)
def test_a_verdict_is_that_of_jsonschema(schema: dict[str, Any], value: Any) -> None:
    """faults 12"""
    assert check_schema(schema) is None
    found = validate(schema, value)

    assert found is None or "validated" not in found.message
    assert (found is None) is Draft202012Validator(schema).is_valid(value)


@given(objects(SCHEMAS).filter(lambda schema: "$ref" not in repr(schema)), VALUES)
def test_a_place_that_is_told_is_one_that_jsonschema_finds(schema: dict[str, Any], value: Any) -> None:
    found = validate(schema, value)
    if found is None:
        return
    places = {error.json_path for error in Draft202012Validator(schema).iter_errors(value)}

    told = {error["path"] for error in found.details["errors"] if error["keyword"] != "None"}
    assert told <= places  # of a schema that is false, jsonschema tells the place above it
