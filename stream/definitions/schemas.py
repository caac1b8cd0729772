"""Schemas rewritten so that a provider accepts them: the same arguments fit, or more (but see `with_flat_root`).

Whatever a definition leaves out, admission still validates against the published schema.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...store.model.secret_schemas import describing, resolve

Schema = dict[str, Any]
_OF_NAMES = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_OF_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_OF_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
           "unevaluatedItems", "unevaluatedProperties")  # fmt: skip
_CHOICES = ("allOf", "anyOf", "oneOf")
_NOTES = {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"}
_MOST_INLINED = 500
"""References that are replaced by what they lead to; a schema with more of them keeps them all."""


def parts(schema: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    """The schema and all schemas in it, each with the place of the value that it describes."""
    yield path, schema
    if not isinstance(schema, dict):
        return
    for keyword, step, part in _inner(schema):
        yield from parts(part, f"{path}.{step}" if keyword == "properties" else path if step else f"{path}[]")


def _inner(schema: Schema) -> Iterator[tuple[str, str, Any]]:
    """Keyword, name (of items: ""), schema."""
    for keyword, value in schema.items():
        if keyword in _OF_NAMES and isinstance(value, dict):
            yield from ((keyword, name, part) for name, part in value.items())
        elif keyword in _OF_LISTS and isinstance(value, list):
            yield from ((keyword, "" if keyword == "prefixItems" else keyword, part) for part in value)
        elif keyword in _OF_ONE:
            yield keyword, "" if keyword == "items" else keyword, value


def rewritten(schema: Any, change: Callable[[Schema], Schema]) -> Any:
    """A copy of the schema in which each schema is what `change` makes of it, the inner ones first."""
    if not isinstance(schema, dict):
        return schema
    made: Schema = {}
    for keyword, value in schema.items():
        if keyword in _OF_NAMES and isinstance(value, dict):
            made[keyword] = {name: rewritten(part, change) for name, part in value.items()}
        elif keyword in _OF_LISTS and isinstance(value, list):
            made[keyword] = [rewritten(part, change) for part in value]
        else:
            made[keyword] = rewritten(value, change) if keyword in _OF_ONE else copy.deepcopy(value)
    return change(made)


def as_object(schema: Schema) -> Schema:
    """A copy whose root says that it is an object, as all providers demand, and not in which draft it is written."""
    root = copy.deepcopy(schema)
    for _ in range(len(root.get("$defs", ())) + 1):
        reference = root.pop("$ref", None)
        target = resolve(root, reference)
        if isinstance(target, dict) and not root.keys() - _NOTES - {"$defs", "definitions", "$schema", "$id"}:
            root = {**copy.deepcopy(target), **root}
        elif reference is not None:
            root["allOf"] = [*root.get("allOf", ()), {"$ref": reference}]
    idle = {"$schema", "$comment"} | ({"$id"} if all(ref.startswith("#") for ref in _references(root)) else set())
    root = {keyword: value for keyword, value in root.items() if keyword not in idle}
    return {**root, "type": "object", "properties": root.get("properties", {})}


def accepting_sealed(schema: Schema, fields: Iterable[str]) -> Schema:
    """A copy in which these secret fields may also be the sealed value that another tool has returned."""
    told = copy.deepcopy(schema)
    for field in fields:
        for place, name in list(describing(told, field)):
            plain = place[name] if isinstance(place[name], dict) else {}
            about = {"description": plain["description"]} if "description" in plain else {}
            place[name] = {"anyOf": [place[name], copy.deepcopy(_SEALED)], **about}
    return told


_SEALED = {
    "type": "object",
    "description": "A value that another tool returned sealed: this object as it was returned, unchanged.",
    "properties": {"$sealed": {"type": "string"}},
    "required": ["$sealed"],
    "additionalProperties": False,
}


def with_flat_root(schema: Schema) -> tuple[Schema, tuple[str, ...]]:
    """A copy without a choice at the root, and the keywords that were there.

    The members of all branches become the root's own. Required is what every way through the choice requires. Here
    alone less may be admitted: what one branch says of a member counts for the branches that leave it open, too.
    """
    found = tuple(keyword for keyword in (*_CHOICES, "enum", "const", "not") if keyword in schema)
    if not found:
        return schema, ()
    whole = inlined(schema)
    return _flat(whole, whole, ()), found


def _flat(root: Schema, schema: Any, way: tuple[int, ...]) -> Schema:
    """A schema of objects without references and choices at its own root; {} where it leads back to itself."""
    if not isinstance(schema, dict) or id(schema) in way:
        return {}
    gone = (*_CHOICES, "enum", "const", "not", "$ref", "unevaluatedProperties")
    made = {keyword: value for keyword, value in schema.items() if keyword not in gone}
    properties, required = dict(made.get("properties", {})), list(made.get("required", ()))
    target = [resolve(root, schema["$ref"])] if "$ref" in schema else []
    for keyword in _CHOICES:
        listed = [*schema.get(keyword, ()), *(target if keyword == "allOf" else ())]
        branches = [_flat(root, branch, (*way, id(schema))) for branch in listed if branch is not False]
        for name, ways in _ways(branches).items():
            properties.setdefault(name, ways[0] if len(ways) == 1 else {"anyOf": ways})
        needed = [set(branch.get("required", ())) for branch in branches] or [set()]
        both = set.union(*needed) if keyword == "allOf" else set.intersection(*needed)
        required += sorted(both - set(required))
    return {**made, "properties": properties, "required": required}


def _ways(branches: Iterable[Schema]) -> dict[str, list[Any]]:
    ways: dict[str, list[Any]] = {}
    for branch in branches:
        for name, part in branch.get("properties", {}).items():
            if part not in ways.setdefault(name, []):
                ways[name].append(part)
    return ways


def inlined(schema: Schema) -> Schema:
    """A copy in which references are what they lead to. Those that lead back to themselves stay, with what they need of
    ``$defs``."""
    left = [_MOST_INLINED]
    made = _inlined(schema, schema, left)
    return copy.deepcopy(schema) if left[0] < 0 else _without_idle_definitions(made)


def _inlined(root: Schema, schema: Any, left: list[int]) -> Any:
    def follow(part: Schema) -> Schema:
        reference = part.get("$ref")
        target = resolve(root, reference)
        own = {keyword: value for keyword, value in part.items() if keyword != "$ref"}
        if isinstance(target, bool):
            return own if target else {**own, "not": {}}
        if not isinstance(target, dict) or left[0] < 0:
            return part
        left[0] -= 1
        whole = {"$ref": reference} if _leads_back(root, target) else _inlined(root, target, left)
        return {**whole, **own} if own.keys() <= _NOTES else {**own, "allOf": [*own.get("allOf", ()), whole]}

    return rewritten(schema, follow)


def _references(schema: Any) -> Iterator[str]:
    for _, part in parts(schema):
        if isinstance(part, dict):
            yield from (str(part[keyword]) for keyword in ("$ref", "$dynamicRef") if keyword in part)


def _leads_back(root: Schema, target: Schema) -> bool:
    pending, seen = [target], set()
    while pending:
        for reference in _references(pending.pop()):
            found = resolve(root, reference)
            if found is target:
                return True
            if reference not in seen and isinstance(found, dict):
                seen.add(reference)
                pending.append(found)
    return False


def _without_idle_definitions(schema: Schema) -> Schema:
    """Without the definitions that nothing refers to; with all of them where a reference is no path into the schema."""
    kept: Schema = {keyword: value for keyword, value in schema.items() if keyword not in ("$defs", "definitions")}
    pending, seen = list(_references(kept)), set()
    while pending:
        reference = pending.pop()
        if not reference.startswith("#/"):
            return schema
        keyword, _, rest = reference[2:].partition("/")
        name = rest.split("/")[0].replace("~1", "/").replace("~0", "~")
        if keyword in ("$defs", "definitions") and (keyword, name) not in seen and name in schema.get(keyword, {}):
            seen.add((keyword, name))
            kept.setdefault(keyword, {})[name] = schema[keyword][name]
            pending += _references(schema[keyword][name])
    return kept


def with_items(part: Schema) -> Schema:
    """An array says what its items are, if only that they may be anything."""
    return {**part, "items": {}} if "array" in types_of(part) and "items" not in part else part


def with_listed_types(part: Schema) -> Schema:
    """A choice between plain types as one list of types, which says the same."""
    choice = part.get("anyOf")
    plain = isinstance(choice, list) and all(isinstance(one, dict) and one.keys() == {"type"} for one in choice)
    if not choice or not plain or "type" in part:
        return part
    rest = {keyword: value for keyword, value in part.items() if keyword != "anyOf"}
    return {"type": list(dict.fromkeys(kind for one in choice for kind in types_of(one))), **rest}


def types_of(part: Schema) -> list[str]:
    """The types that a schema names."""
    named = part.get("type", [])
    return [named] if isinstance(named, str) else named
