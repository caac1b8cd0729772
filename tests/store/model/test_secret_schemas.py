"""Where a schema describes a secret field, and what is not published of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolonce.store.model.secret_schemas import describing, resolve, without_samples

SECRET = {"type": "string", "default": "sk-1", "examples": ["sk-2"]}
OPEN = {"type": "string", "default": "plain"}
DEFS = {"Auth": {"properties": {"token": SECRET, "user": OPEN}}, "Token": SECRET}
PLACES: list[tuple[str, dict[str, Any]]] = [
    ("token", {"properties": {"token": SECRET, "user": OPEN}}),
    ("token", {"properties": {"token": {"anyOf": [SECRET, {"type": "null"}], "default": None}, "user": OPEN}}),
    ("token", {"properties": {"token": {"type": "array", "items": SECRET}, "user": OPEN}}),
    ("token", {"properties": {"token": {"$ref": "#/$defs/Token"}, "user": OPEN}, "$defs": DEFS}),
    ("token", {"allOf": [{"properties": {"token": SECRET}}], "properties": {"user": OPEN}}),
    ("token", {"$ref": "#/$defs/Auth", "$defs": DEFS}),
    ("auth.token", {"properties": {"auth": {"$ref": "#/$defs/Auth"}}, "$defs": DEFS}),
    ("auth.token", {"properties": {"auth": {"type": "array", "items": {"$ref": "#/$defs/Auth"}}}, "$defs": DEFS}),
    ("auth.token", {"properties": {"auth": {"oneOf": [{"$ref": "#/$defs/Auth"}, {"type": "null"}]}}, "$defs": DEFS}),
]


@pytest.mark.parametrize(("path", "schema"), PLACES)
def test_default_and_examples_of_a_secret_field_are_left_out_wherever_it_is_described(
    path: str, schema: dict[str, Any]
) -> None:
    before = json.dumps(schema)

    told = json.dumps(without_samples(schema | {"$defs": {**schema.get("$defs", {})}}, [path]))

    assert [name for name, _ in describing(schema, path)] != []
    unused = json.dumps(DEFS["Token"]) if "Token" in schema.get("$defs", {}) and path == "auth.token" else "-"
    assert "sk-" not in told.replace(unused, "")
    assert '"plain"' in told
    assert json.dumps(schema) == before


def test_a_field_that_no_schema_describes_is_found_nowhere() -> None:
    assert list(describing({"properties": {"a": {"type": "string"}}}, "b")) == []
    assert list(describing({"properties": {"a": True}}, "a.b")) == []
    assert list(describing({}, "a")) == []


def test_a_schema_that_leads_back_to_itself_is_gone_through_once() -> None:
    tree = {"properties": {"token": SECRET, "next": {"$ref": "#"}}}

    assert "sk-" not in json.dumps(without_samples(tree, ["token", "next.token", "next.next.token"]))


@pytest.mark.parametrize(
    ("reference", "found"),
    [("#", True), ("#/a/0", 1), ("#/b~1c", 2), ("#/d~0e", 3), ("#/a/7", False), ("#/a/x", False), ("#f", False),
     ("other.json", False), (None, False), (5, False)],
)  # fmt: skip
def test_a_reference_leads_into_the_schema_or_nowhere(reference: Any, found: object) -> None:
    root = {"a": [1], "b/c": 2, "d~e": 3}

    assert resolve(root, reference) == (root if found is True else found or None)
