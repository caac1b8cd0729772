"""From a function to the schema of its arguments, and back from arguments to the function."""

from __future__ import annotations

import dataclasses
from datetime import date
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from toolonce.store.model.outcomes import Failure
from toolonce.store.schema.validation import validate
from toolonce.worker import Call
from toolonce.worker.tools.errors import BadTool
from toolonce.worker.tools.signature import read_signature


class Item(BaseModel):
    item: str
    cents: int


def create_invoice(
    customer: str,
    lines: list[Item],
    due: date | None = None,
    schema: Annotated[int, Field(ge=1, description="its own words")] = 1,
    *,
    call: Call,
) -> None:
    """Write an invoice.

    It is sent at once.

    Args:
        customer: whom it is for,
            by name.
        schema: words of the docstring

    Returns:
        nothing
    """


def test_the_schema_says_what_the_signature_the_docstring_and_the_fields_say() -> None:
    signature = read_signature(create_invoice)

    properties = signature.schema["properties"]
    assert list(properties) == ["customer", "lines", "due", "schema"]
    assert signature.schema["required"] == ["customer", "lines"]
    assert signature.schema["additionalProperties"] is False
    assert properties["customer"] == {"type": "string", "description": "whom it is for, by name."}
    assert properties["schema"]["description"] == "its own words"
    assert signature.description == "Write an invoice.\n\nIt is sent at once."


def test_the_context_is_injected_and_never_in_the_schema() -> None:
    signature = read_signature(create_invoice)

    assert signature.takes_call
    assert "call" not in signature.schema["properties"]


def test_arguments_become_values_of_the_annotated_types() -> None:
    given = {"customer": "a", "lines": [{"item": "x", "cents": 2**70}], "due": "2030-01-02"}

    bound = read_signature(create_invoice).bind(given)

    assert bound == {
        "customer": "a",
        "lines": [Item(item="x", cents=2**70)],
        "due": date(2030, 1, 2),
        "schema": 1,
    }


def test_the_schema_coerces_nothing() -> None:
    signature = read_signature(create_invoice)

    failure = validate(signature.schema, {"customer": 5, "lines": [{"item": "x", "cents": "12"}]})

    assert failure
    assert {error["path"] for error in failure.details["errors"]} == {"$.customer", "$.lines[0].cents"}


def test_a_rule_that_only_the_types_know_is_a_refusal_with_its_path() -> None:
    bound = read_signature(create_invoice).bind({"customer": "a", "lines": [], "due": "not a day"})

    assert isinstance(bound, Failure)
    assert "$.due" in bound.message


@pytest.mark.parametrize("arguments", [{"a": 1}, {"a": 1, "b": [1.5, None]}, {"a": -5, "b": []}])
def test_what_is_exact_fits_the_schema_and_binds_the_same(arguments: dict[str, Any]) -> None:
    def tool(a: int, b: list[float | None] | None = None) -> None: ...

    signature = read_signature(tool)

    assert signature.bind_exact(arguments) == signature.bind(arguments)
    assert validate(signature.schema, arguments) is None


@pytest.mark.parametrize("arguments", [{"a": "1"}, {"a": True}, {"a": None}, {}, {"a": 1, "c": 2}])
def test_what_is_not_exact_is_left_to_the_schema(arguments: dict[str, Any]) -> None:
    def tool(a: int) -> None: ...

    assert read_signature(tool).bind_exact(arguments) is None


def test_an_explicit_schema_is_kept_as_others_will_read_it() -> None:
    def look(**known: int) -> None: ...

    given = {"type": "object", "properties": {7: {"type": "integer"}}, "required": ("7",)}
    kept = read_signature(look, given).schema

    assert kept == {"type": "object", "properties": {"7": {"type": "integer"}}, "required": ["7"]}


def test_an_explicit_schema_is_taken_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}

    signature = read_signature(lambda a: a, schema)

    assert signature.schema == schema
    assert signature.bind({"a": 1}) == {"a": 1}


def _positional(a: int, /) -> None: ...
def _variadic(*a: int) -> None: ...
def _unnameable(a: object) -> None: ...


@pytest.mark.parametrize(
    ("function", "schema", "complaint"),
    [
        (_positional, None, "has no name that JSON can use"),
        (_variadic, None, "has no name that JSON can use"),
        (_positional, {"type": "nonsense"}, "not a JSON Schema 2020-12"),
        (lambda a: a, {"type": "object", "properties": {"b": {}}}, "which the handler does not take"),
    ],
)
def test_what_cannot_work_is_refused_at_registration_in_one_line(function: Any, schema: Any, complaint: str) -> None:
    with pytest.raises(BadTool, match=complaint) as refused:
        read_signature(function, schema)

    assert "\n" not in str(refused.value)


REMOTE = "http://example.com/address.json"
FOREIGN: dict[str, dict[str, Any]] = {
    "at the root": {"$ref": REMOTE},
    "in a property": {"properties": {"a": {"$ref": REMOTE}}},
    "as a dynamic one": {"properties": {"a": {"$dynamicRef": REMOTE + "#node"}}},
    "under $defs, unused": {"$defs": {"x": {"items": {"$ref": REMOTE}}}},
    "where only a local one leads": {"properties": {"a": {"$ref": "#/x-mine/b"}}, "x-mine": {"b": {"$ref": REMOTE}}},
    "in a branch": {"anyOf": [{"type": "object"}, {"not": {"$ref": REMOTE}}]},
    "relative to a name of its own": {"$id": "http://example.com/tool.json", "properties": {"a": {"$ref": "b.json"}}},
    "in a file": {"properties": {"a": {"$ref": "file:///etc/hostname"}}},
    "to a place it has not": {"properties": {"a": {"$ref": "#/$defs/none"}}},
    "to no URL": {"properties": {"a": {"$ref": "http://["}}},
    "to what is not a schema": {"$ref": "#/enum/0", "enum": [1]},
}


@pytest.mark.parametrize("where", FOREIGN)
def test_a_schema_that_refers_to_what_it_does_not_hold_is_refused_at_registration(where: str) -> None:
    with pytest.raises(BadTool, match="which it does not hold; nothing is fetched") as refused:
        read_signature(lambda a: a, FOREIGN[where])

    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}])
def test_a_schema_that_refers_to_itself_without_end_is_refused_at_registration(schema: dict[str, Any]) -> None:
    with pytest.raises(BadTool, match="refers to itself without end"):
        read_signature(lambda a: a, schema)


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"$ref": "#/enum/0", "enum": [1]}, {"$ref": "#/$defs/none"}])
def test_arguments_that_a_published_schema_cannot_judge_are_refused_and_nothing_is_raised(
    schema: dict[str, Any],
) -> None:
    refused = validate(schema, {"a": 1})
    assert refused is not None
    assert "cannot be validated" in refused.message


OWN: dict[str, dict[str, Any]] = {
    "in $defs": {"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}},
    "to itself": {"properties": {"a": {"anyOf": [{"type": "integer"}, {"$ref": "#"}]}}},
    "by an anchor": {"properties": {"a": {"$ref": "#n"}}, "$defs": {"n": {"$anchor": "n", "type": "integer"}}},
    "by a dynamic one": {
        "properties": {"a": {"$dynamicRef": "#n"}}, "$defs": {"n": {"$dynamicAnchor": "n", "type": "integer"}},
    },
    "by its own name": {
        "$id": "http://example.com/t.json", "properties": {"a": {"$ref": "http://example.com/t.json#/$defs/n"}},
        "$defs": {"n": {"type": "integer"}},
    },
    "to JSON Schema itself": {"properties": {"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}},
    "only in data": {"properties": {"a": {"default": {"$ref": REMOTE}, "enum": [1, {"$ref": REMOTE}]}}},
    "only as a member's name": {"properties": {"a": {"properties": {"$ref": {"type": "string"}}}}},
}  # fmt: skip


@pytest.mark.parametrize("where", OWN)
def test_a_schema_may_refer_to_what_it_holds(where: str) -> None:
    signature = read_signature(lambda a: a, OWN[where])

    assert (validate(signature.schema, {"a": 1}) is None) is (where != "to JSON Schema itself")


def test_a_published_schema_never_makes_anyone_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: pytest.fail("something was fetched"))
    refused = validate({"properties": {"a": {"$ref": REMOTE}}}, {"a": 1})

    assert refused is not None
    assert f"refers to '{REMOTE}', which it does not hold" in refused.message


@dataclasses.dataclass
class Point:
    x: float
    p0: float = 0.0


def test_a_dataclass_of_the_standard_library_is_an_argument_as_any_other() -> None:
    """Its fields were taken for parameters of the handler."""

    def draw(at: Point, colour: str = "red") -> str:
        return f"{at.x} {colour}"

    signature = read_signature(draw)

    assert signature.schema["properties"].keys() == {"at", "colour"}
    assert signature.bind({"at": {"x": 1.5, "p0": 2.0}}) == {"at": Point(1.5, 2.0), "colour": "red"}


def test_a_reference_through_true_or_false_is_refused_as_any_other_that_leads_nowhere() -> None:
    def pay(**arguments: Any) -> None: ...

    with pytest.raises(BadTool, match="refers to '#/properties/a/items'"):
        read_signature(pay, {"type": "object", "properties": {"a": True, "b": {"$ref": "#/properties/a/items"}}})
