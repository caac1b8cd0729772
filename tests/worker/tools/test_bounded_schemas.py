"""Schemas that could hold a worker are refused at registration, and a worker judges by the same bounded rules."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from tests.support.processes.workers import Site
from toolonce.store.model.outcomes import Failure
from toolonce.store.model.states import State
from toolonce.store.schema.validation import validate
from toolonce.worker import Registry
from toolonce.worker.tools.errors import BadTool
from toolonce.worker.tools.signature import read_signature


class Slow(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")
    text: Annotated[str, Field(pattern="^(a+)+$")]


def compiled(a: Annotated[str, Field(pattern=re.compile("^(a+)+$"))]) -> None: ...


def chosen(a: Slow) -> None: ...


def inside(a: list[Slow | None]) -> None: ...


def ahead(a: Annotated[str, Field(pattern="^(?=a)b")]) -> None: ...


def often(a: Annotated[str, Field(pattern="^a{1,2000}$")]) -> None: ...


@pytest.mark.parametrize("function", [compiled, chosen, inside, ahead, often])
def test_a_signature_whose_patterns_have_no_bound_is_refused_at_registration(function: Any) -> None:
    """faults 12"""
    with pytest.raises(BadTool, match=r"may take forever|look-around|counts above 1000"):
        read_signature(function)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "(?!a)b"}}},
        {"properties": {"a": {"items": {"pattern": r"(a)\1"}}}},
        {"properties": {"a": {"patternProperties": {"a(?<!b)": True}}}},
        {"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"not": {"pattern": "a{3000}"}}}},
    ],
)
def test_a_schema_with_a_pattern_that_has_no_bound_is_refused_with_a_way_out(schema: dict[str, Any]) -> None:
    """faults 12"""
    with pytest.raises(BadTool, match="say lengths with minLength and maxLength") as refused:
        read_signature(lambda a: a, schema)

    assert "\n" not in str(refused.value)


def test_a_schema_that_refers_to_itself_by_way_of_a_list_is_refused_at_registration() -> None:
    """faults 12"""
    endless = {
        "$defs": {"b": {"if": {"type": "array"}, "then": {"$ref": "#/$defs/b"}}},
        "allOf": [{"$ref": "#/$defs/b"}],
    }
    with pytest.raises(BadTool, match="refers to itself without end"):
        read_signature(lambda a: a, endless)


def test_a_number_that_json_has_not_is_refused_at_registration() -> None:
    with pytest.raises(BadTool, match="is not JSON"):
        read_signature(lambda a: a, {"properties": {"a": {"multipleOf": float("inf")}}})


class Left(BaseModel):
    child: Left | Right | None = None


class Right(BaseModel):
    child: Left | Right | None = None


class Leaf(BaseModel):
    items: list[Leaf] | dict[str, Leaf] | int = 0


def choose(a: Left) -> None: ...


def listed(a: list[list[Left] | list[Right]]) -> None: ...


def plain(a: Leaf) -> None: ...


def anything(a: JsonValue) -> None: ...


def nested(levels: int, name: str) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {name: value}
    return value


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (choose, nested(60, "child")),
        (listed, [[nested(60, "child")]]),
        (listed, [[nested(15, "child")] * 20]),
    ],
)
def test_values_that_pydantic_would_read_in_too_many_ways_are_refused_by_the_worker(function: Any, value: Any) -> None:
    """faults 12"""
    signature = read_signature(function)
    refused = signature.bind({"a": value})

    assert validate(signature.schema, {"a": value}) is None  # by the schema it is a matter of a few steps
    assert isinstance(refused, Failure)
    assert refused.code == "too_costly"
    assert signature.bind_exact({"a": value}) is None


@pytest.mark.parametrize(
    ("function", "value"),
    [(choose, nested(12, "child")), (plain, {"items": {"a": nested(3, "items")}}), (anything, nested(60, "x"))],
)
def test_values_of_types_that_choose_are_taken_where_the_ways_are_few(function: Any, value: Any) -> None:
    assert not isinstance(read_signature(function).bind({"a": value}), Failure)


@pytest.mark.parametrize("hint", [Decimal, Annotated[Decimal, Field(max_digits=8, decimal_places=2)]])
def test_decimals_of_a_signature_can_be_judged(hint: Any) -> None:
    def pay(amount: Any) -> None: ...

    pay.__annotations__["amount"] = hint
    signature = read_signature(pay)

    assert validate(signature.schema, {"amount": "12.50"}) is None
    assert signature.bind({"amount": "12.50"}) == {"amount": Decimal("12.50")}


def test_a_worker_judges_hostile_arguments_that_were_admitted_under_another_schema(site: Site) -> None:
    """faults 12"""
    admitted, served, effects = Registry(), Registry(), []

    def mark(labels: Any) -> int:
        effects.append(len(labels))
        return len(labels)

    admitted.tool(schema={"properties": {"labels": {}}})(mark)
    strict = {"type": "array", "uniqueItems": True, "items": {"pattern": "^(a+)+$"}}
    served.tool(schema={"properties": {"labels": strict}})(mark)
    site.publish(admitted)
    bad = site.submit("mark", labels=["a" * 41 + "!"])
    many = site.submit("mark", labels=["a" * number for number in range(1, 300)])
    with site.worker_here(served):
        refused = site.wait_for(bad, State.REFUSED)
        site.wait_for(many, State.SUCCEEDED)

    assert refused.failure
    assert refused.failure.code == "invalid_arguments"
    assert effects == [299]
