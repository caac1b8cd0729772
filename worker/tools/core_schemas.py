"""What pydantic's own validation of a signature may cost, read from its core schema: patterns for an engine that
backtracks, and unions whose members lead back to them, each of which pydantic tries at each level.

JSON Schema's verdict is bounded by steps; pydantic cannot be stopped, and holds the interpreter meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

MOST_WAYS = 1_000_000
"""Ways through nested unions that pydantic may try, at some 0.3 microseconds each."""
_OBJECTS = frozenset({"model", "dataclass", "dict", "typed-dict", "dataclass-args", "model-fields"})
_ARRAYS = frozenset({"list", "tuple", "set", "frozenset", "generator"})


def backtracks(core: Any) -> bool:
    """Whether pydantic would match a pattern with Python's `re`, which holds the interpreter while it backtracks."""
    return any(
        part.get("regex_engine") == "python-re" or isinstance(part.get("pattern"), re.Pattern) for part in _parts(core)
    )


def branching(core: Any) -> int:
    """How many members of one union, at most, take the same kind of value and lead back to it; 0 or 1 as a rule."""
    named = {part["ref"]: part for part in _parts(core) if isinstance(part.get("ref"), str)}
    leads = {ref: _names(part) for ref, part in named.items()}
    again = {ref for ref in named if ref in _reached(leads[ref], leads)}
    most = 0
    for part in _parts(core):
        if part.get("type") == "union":
            inner = [one[0] if isinstance(one, tuple) else one for one in part["choices"]]
            kinds = [_kinds(one, named) for one in inner if _reached(_names(one), leads) & again]
            most = max(most, *(sum(kind in found for found in kinds) for kind in ("object", "array")))
    return most


def is_too_deep(value: Any, ways: int) -> bool:
    """Whether so many ways at each level come to more than `MOST_WAYS` in this value, all lists and objects counted."""
    level, each, tried = [value], 1, 0
    while level:
        each *= ways
        tried += each * len(level)
        if tried > MOST_WAYS:
            return True
        level = [inner for one in level for inner in _inside(one) if isinstance(inner, dict | list)]
    return False


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from value


def _parts(core: Any) -> Iterator[dict[Any, Any]]:
    """All dicts in a core schema, each once; what a reference names is found where it is defined."""
    pending, seen = [core], set()
    while pending:
        part = pending.pop()
        if id(part) not in seen:
            seen.add(id(part))
            pending.extend(_inside(part))
            if isinstance(part, dict):
                yield part


def _names(part: Any) -> set[str]:
    """The definitions that a part refers to."""
    return {inner["schema_ref"] for inner in _parts(part) if isinstance(inner.get("schema_ref"), str)}


def _reached(names: set[str], leads: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending.extend(leads.get(name, ()))
    return reached


def _kinds(part: Any, named: dict[str, Any]) -> frozenset[str]:
    """Which kinds of JSON value a member of a union looks into; both where its type does not say."""
    for _ in range(len(named) + 20):  # what wraps what; a circle of names ends here
        kind = part.get("type")
        if kind in _OBJECTS:
            return frozenset({"object"})
        if kind in _ARRAYS:
            return frozenset({"array"})
        part = named.get(part["schema_ref"], {}) if kind == "definition-ref" else part.get("schema", {})
    return frozenset({"object", "array"})
