"""Which items and members of a value a schema has looked at: what ``unevaluatedItems`` and ``unevaluatedProperties``
are about. As jsonschema finds them, with each step counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .engine import LOOKUP_STEPS, Node, Walk
from .patterns import Pattern

_Find = Callable[[Node, Any, Walk], set[Any]]


def evaluated_items(node: Node, value: list[Any], walk: Walk) -> set[Any]:
    """Positions of the items that this part, or one that applies in its place, has looked at."""
    schema = node.schema
    if not isinstance(schema, dict):
        return set()
    walk.spend(1 + len(schema))
    if "items" in schema:
        walk.spend(len(value))
        return set(range(len(value)))
    seen = set(range(len(schema.get("prefixItems", ()))))
    for keyword in ("contains", "unevaluatedItems"):
        if keyword in schema:
            part = node.part(schema[keyword])
            seen.update(index for index, item in enumerate(value) if walk.fits(part, item))
    return _with_applied(node, value, walk, (seen, evaluated_items))


def evaluated_names(node: Node, value: dict[str, Any], walk: Walk) -> set[Any]:
    """Names of the members that this part, or one that applies in its place, has looked at."""
    schema = node.schema
    if not isinstance(schema, dict):
        return set()
    walk.spend(1 + len(schema))
    seen: set[Any] = set(filter(value.__contains__, _counted(schema.get("properties", ()), walk)))
    for text in schema.get("patternProperties", ()):
        pattern = Pattern(text)
        for name in value:
            walk.spend(1 + pattern.cost(name))
            if pattern.matches(name):
                seen.add(name)
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if keyword in schema:
            part = node.part(schema[keyword])
            seen.update(name for name, inner in value.items() if walk.fits(part, inner))
    for name, inner in schema.get("dependentSchemas", {}).items():
        if name in value:
            seen |= evaluated_names(node.part(inner), value, walk)
    return _with_applied(node, value, walk, (seen, evaluated_names))


def _with_applied(node: Node, value: Any, walk: Walk, known: tuple[set[Any], _Find]) -> set[Any]:
    """What is seen here, and by the parts that apply to the same value."""
    seen, find = known
    walk.depth += 1
    for part in _applied(node, value, walk):
        found = find(part, value, walk)
        walk.spend(len(found))
        seen |= found
    walk.depth -= 1
    return seen


def _applied(node: Node, value: Any, walk: Walk) -> Iterator[Node]:
    schema = node.schema
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            walk.spend(LOOKUP_STEPS)
            yield node.referred(schema[keyword])
    for keyword in ("allOf", "oneOf", "anyOf"):
        for inner in schema.get(keyword, ()):
            part = node.part(inner)
            if walk.fits(part, value):
                yield part
    if "if" in schema:
        asked = node.part(schema["if"])
        chosen = "then"
        if walk.fits(asked, value):
            yield asked
        else:
            chosen = "else"
        if chosen in schema:
            yield node.part(schema[chosen])


def _counted(names: Any, walk: Walk) -> Any:
    walk.spend(len(names))
    return names
