"""Tools of every kind that a registry takes, for definitions of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from toolonce.worker import Registry


class PersonColour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    """Where someone lives."""

    city: str
    zip_code: Annotated[str, Field(min_length=4, max_length=5)] | None = None


class Person(BaseModel):
    model_config = {"extra": "forbid"}
    name: str
    home: Address
    work: Address


class TreeNode(BaseModel):
    value: int
    children: list[TreeNode] = []


@dataclass
class PersonPlace:
    x: float
    y: float


class Card(BaseModel):
    kind: Literal["card"]
    number: str


class Cash(BaseModel):
    kind: Literal["cash"]


tools = Registry()


@tools.tool(effect="read")
def plain(city: str, days: int) -> str:
    """The weather of the next days.

    Args:
        city: the name of the city, in English.
    """
    return f"{city} {days}"


@tools.tool
def nothing() -> None: ...


@tools.tool(concurrency=1)
def optional(cents: int, note: str | None = None, tags: list[str] | None = None, rate: float = 0.5) -> None:
    """Pay."""


@tools.tool
def nested(who: Person, at: PersonPlace, colour: PersonColour = PersonColour.RED) -> None:
    """Register someone."""


@tools.tool(effect="read")
def recursive(tree: TreeNode) -> int:
    """Count."""
    return tree.value


@tools.tool(effect="idempotent")
def choice(payment: Annotated[Card | Cash, Field(discriminator="kind")], pair: tuple[int, int]) -> None: ...


@tools.tool
def open_ended(found: dict[str, int], anything: Any, some: list, **more: int) -> None: ...  # type: ignore[type-arg]


@tools.tool(effect="read", secret_result={"key": {"opens_in": ["sign_in.token"]}})
def mint() -> dict[str, str]:
    """Make a key."""
    return {"key": "k"}


@tools.tool(secret="token")
def sign_in(token: Annotated[str, Field(description="A key of mint.")] = "sk-default", user: str = "me") -> None:
    """Sign in."""


EXPLICIT: dict[str, dict[str, Any]] = {
    "untyped": {"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"a": {"type": "array"}}},
    "empty": {},
    "root_reference": {"$ref": "#/$defs/In", "$defs": {"In": {"type": "object", "properties": {"n": {"minimum": 1}}}}},
    "root_choice": {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "oneOf": [
            {"properties": {"by": {"type": "integer"}}, "required": ["id", "by"]},
            {"$ref": "#/$defs/Named"},
        ],
        "$defs": {"Named": {"properties": {"by": {"type": "string"}, "of": {}}, "required": ["id", "of"]}},
    },
    "root_all": {"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]},
    "beside_reference": {
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/N", "maximum": 5, "description": "small"}},
        "$defs": {"N": {"type": "integer", "maximum": 9}},
    },
}
for _name, _schema in EXPLICIT.items():

    @tools.tool(name=_name, schema=_schema, effect="read")
    def _(**arguments: Any) -> None: ...
