"""Which schemas OpenAI's strict mode takes, and what is said of the others."""

from __future__ import annotations

from typing import Any

import pytest

from toolonce.stream.definitions.strict import why_not_strict


def closed(**properties: Any) -> dict[str, Any]:
    """An object with exactly these members."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def levels(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = closed(inner=schema)
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        closed(),
        closed(n={"type": "integer", "minimum": 1, "multipleOf": 2, "description": "even"}),
        closed(when={"type": "string", "format": "date-time"}, who={"type": ["string", "null"]}),
        closed(list={"type": "array", "items": closed(kind={"const": "a"}), "minItems": 1}),
        closed(either={"anyOf": [{"type": "string"}, closed(x={"enum": [1, 2]})]}),
        closed(tree={"$ref": "#/$defs/T"}) | {"$defs": {"T": closed(kids={"type": "array", "items": {"$ref": "#"}})}},
        levels(10),
        closed(**{f"m{at}": {"type": "string"} for at in range(5_000)}),
    ],
)  # fmt: skip
def test_a_schema_within_the_subset_is_strict(schema: dict[str, Any]) -> None:
    assert why_not_strict(schema) is None


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (closed(n={"type": "integer"}) | {"required": []}, "$.n may be left out"),
        ({"type": "object", "properties": {}}, "$ takes members that it does not name"),
        (closed(a=closed() | {"additionalProperties": True}), "$.a takes members that it does not name"),
        (closed(a=closed() | {"additionalProperties": {"type": "string"}}), "$.a takes members that it does not name"),
        (closed(s={"type": "string", "minLength": 1}), "$.s uses minLength"),
        (closed(s={"type": "string", "default": "x"}), "$.s uses default"),
        (closed(s={"type": "string", "format": "uri"}), "$.s has the format uri"),
        (closed(a={"type": "array", "items": {"type": "integer", "not": {}}}), "$.a[] uses not"),
        (closed(a={"type": "array"}), "$.a does not say what its items are"),
        (closed(a={"type": "array", "items": {}}), "$.a[] may be of any type"),
        (closed(a=True), "$.a is not described"),
        (closed(a={"description": "x"}), "$.a may be of any type"),
        (closed(a={"oneOf": [{"type": "string"}], "type": "string"}), "$.a uses oneOf"),
        (closed(a={"$ref": "#/$defs/A", "description": "x"}), "$.a refers to #/$defs/A in a way"),
        (closed(a={"$ref": "#/properties/b"}, b={"type": "string"}), "$.a refers to #/properties/b in a way"),
        (closed(**{"a$": {"type": "string"}}), "$ has the member 'a$'"),
        (closed() | {"required": ["a"]}, "$.a is not described"),
        (levels(11), "11 levels of objects, and strict schemas at most 10"),
        (closed(a={"enum": list(range(1_001))}), "1,001 values in enums"),
        (closed(**{f"m{at}": {"type": "string"} for at in range(5_001)}), "5,001 members"),
        (closed(a={"enum": ["x" * 120_001]}), "characters in names and enums"),
    ],
)
def test_why_a_schema_cannot_be_strict_is_said_with_the_place(schema: dict[str, Any], why: str) -> None:
    assert why in (why_not_strict(schema) or "")
