"""Which calls share a unique key, and which arguments may identify an effect."""

from __future__ import annotations

from typing import Any

import pytest

from toolonce.store.model.keyring import Keyring
from toolonce.store.model.specs import ToolSpec
from toolonce.store.model.unique_keys import Owner, check, unique_keys

HERE = Owner("toolonce", "acme/1", "acme")
OLD, NEW = Keyring.parse("the old key of all"), Keyring.parse("the new key of all,the old key of all")


def of(arguments: dict[str, Any], owner: Owner = HERE, keyring: Keyring = OLD, **terms: Any) -> tuple[str, ...]:
    spec = ToolSpec("pay", **{"unique_by": ("order",), **terms})
    return unique_keys(spec, owner, arguments, keyring)


def test_a_key_is_of_the_named_members_alone_by_their_value() -> None:
    assert of({"order": 1, "cents": 5}) == of({"cents": 6, "order": 1.0})
    assert of({"order": 1}) != of({"order": "1"})
    assert of({"order": 1, "item": 2}, unique_by=("item", "order")) == of(
        {"order": 1, "item": 2}, unique_by=("order", "item")
    )
    assert of({"order": 1, "item": 1}, unique_by=("item",)) != of({"order": 1, "item": 1})


def test_a_key_is_of_one_namespace_one_tool_and_one_scope_or_tenant() -> None:
    other = Owner("toolonce", "acme/2", "acme")
    assert of({"order": 1}) != of({"order": 1}, other)
    assert of({"order": 1}, unique_in="tenant") == of({"order": 1}, other, unique_in="tenant")
    assert of({"order": 1}) != of({"order": 1}, HERE._replace(namespace="other"))
    assert unique_keys(ToolSpec("pay"), HERE, {"order": 1}, OLD) == ()


def test_a_key_is_found_under_every_key_of_the_keyring_and_without_one() -> None:
    assert of({"order": 1}, keyring=NEW)[1:] == of({"order": 1})
    assert of({"order": 1}, keyring=Keyring()) == of({"order": 1})[1:]


def test_a_tool_that_holds_duplicates_shares_no_key_with_one_that_names_all_its_arguments() -> None:
    equal = ToolSpec("pay", hold_duplicates=True)
    assert not set(unique_keys(equal, HERE, {"order": 1}, OLD)) & set(of({"order": 1}))


TEXT = {"type": "string"}
SCHEMAS: dict[str, Any] = {
    "text": TEXT,
    "number or null": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "list of types": {"type": ["integer", "string"]},
    "enum": {"enum": ["a", 1, None]},
    "const": {"const": "a"},
    "reference": {"$ref": "#/$defs/Id"},
    "all of": {"allOf": [{"$ref": "#/$defs/Id"}], "description": "x"},
}
NOT_SCALAR: dict[str, Any] = {
    "anything": {},
    "true": True,
    "list": {"type": "array"},
    "object or text": {"type": ["object", "string"]},
    "enum of lists": {"enum": [["a"]]},
    "itself": {"$ref": "#/properties/id"},
    "nothing there": {"$ref": "#/$defs/None"},
    "text or anything": {"anyOf": [TEXT, {}]},
}


def _spec(schema: Any, **terms: Any) -> ToolSpec:
    whole = {"type": "object", "properties": {"id": schema}, "required": ["id"], "$defs": {"Id": TEXT}}
    return ToolSpec("pay", schema=whole, **{"unique_by": ("id",), **terms})


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_is_always_a_scalar_may_identify_an_effect(name: str) -> None:
    assert check(_spec(SCHEMAS[name])) is None


@pytest.mark.parametrize("name", NOT_SCALAR)
def test_what_may_be_something_else_is_refused(name: str) -> None:
    fault = check(_spec(NOT_SCALAR[name]))
    assert fault
    assert "may be a list or an object: give it the type" in fault


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"unique_by": ("order",)}, "is not an argument of it; there are id"),
        ({"secret": ("id",)}, "is secret"),
        ({"secret": ("id.part",)}, "is secret"),
        ({"unique_in": "turn"}, "'scope' or 'tenant'"),
        ({"hold_duplicates": True}, "drop one"),
        ({"unique_by": (), "unique_for_ms": 1}, "name the arguments"),
        ({"unique_by": (), "unique_in": "tenant"}, "name the arguments"),
    ],
)
def test_a_unique_key_that_cannot_work_is_refused_with_the_way_out(terms: dict[str, Any], words: str) -> None:
    fault = check(_spec(TEXT, **terms))
    assert fault
    assert words in fault


def test_a_member_that_may_be_left_out_is_refused() -> None:
    fault = check(ToolSpec("pay", schema={"properties": {"id": TEXT}}, unique_by=("id",)))
    assert fault
    assert "give it no default" in fault
