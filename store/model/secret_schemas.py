"""Where the schema of a tool describes its secret fields. Pure: schemas in, places or schemas out."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

_SAMPLES = ("default", "examples")
_BRANCHES = ("allOf", "anyOf", "oneOf", "prefixItems")


def describing(schema: dict[str, Any], path: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The ``properties`` objects that describe the secret field `path` (``token``, ``auth.token``), each with the name
    in it. Lists, choices and references within the schema on the way are looked through."""
    *way, name = path.split(".")
    holders = [schema]
    for step in way:
        holders = [place[step] for place in _properties(schema, holders, step) if isinstance(place[step], dict)]
    for place in _properties(schema, holders, name):
        yield place, name


def without_samples(schema: dict[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """A copy that holds no default and no examples of the secret fields: they may be secrets, and it is published."""
    told = copy.deepcopy(schema)
    fields = [place[name] for path in paths for place, name in describing(told, path)]
    for part in [part for field in fields for part in _alternatives(told, field)]:
        for sample in _SAMPLES:
            part.pop(sample, None)
    return told


def _properties(root: dict[str, Any], holders: Iterable[Any], name: str) -> Iterator[dict[str, Any]]:
    """The ``properties`` objects with this name in all that the holders may be."""
    for holder in holders:
        for part in _alternatives(root, holder):
            properties = part.get("properties")
            if isinstance(properties, dict) and name in properties:
                yield properties


def _alternatives(root: dict[str, Any], part: Any) -> Iterator[dict[str, Any]]:
    """A part of a schema, and the parts that describe the same value or an item of it; each once."""
    pending, seen = [part], set()
    while pending:
        found = pending.pop()
        if not isinstance(found, dict) or id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        pending += [found.get("items"), resolve(root, found.get("$ref"))]
        pending += [branch for keyword in _BRANCHES for branch in found.get(keyword, ())]


def resolve(root: dict[str, Any], reference: Any) -> Any:
    """What a reference into the schema (``#/$defs/Address``) leads to; None where it leads nowhere in it."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    found: Any = root
    for step in reference.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        elif isinstance(found, dict) and step in found:
            found = found[step]
        else:
            return None
    return found
