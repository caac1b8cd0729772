"""Whether OpenAI's strict mode takes a schema as it is. In strict mode the model can only write arguments that fit.

The rules are those of OpenAI's guide to structured outputs: every object closed, every member required, every value
typed, and a subset of the keywords. A schema is never changed to fit them: an optional member that became required and
nullable would come as null, which the tool's own schema refuses.
"""

from __future__ import annotations

import re
from typing import Any

from .schemas import Schema, parts, types_of

_KEYWORDS = frozenset(
    {
        "$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "exclusiveMaximum",
        "exclusiveMinimum", "format", "items", "maxItems", "maximum", "minItems", "minimum", "multipleOf", "pattern",
        "properties", "required", "title", "type",
    }
)  # fmt: skip
_FORMATS = frozenset(
    {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"},
)
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_REFERENCE = re.compile(r"#(/\$defs/[^/]+)?")
_MOST_MEMBERS, _MOST_LEVELS, _MOST_VALUES, _MOST_TEXT = 5_000, 10, 1_000, 120_000


def why_not_strict(schema: Schema) -> str | None:
    """The first reason why the schema cannot be strict, in words; None where it can."""
    members = values = text = 0
    for path, part in parts(schema):
        if why := _why_not(path, part):
            return why
        if part is False:
            continue
        names = part.get("properties", {})
        members += len(names)
        values += len(part.get("enum", ()))
        text += sum(map(len, names)) + sum(len(str(value)) for value in part.get("enum", ()))
    levels = max(_levels(part) for part in (schema, *schema.get("$defs", {}).values()))
    for found, most, what in (
        (members, _MOST_MEMBERS, "members"),
        (levels, _MOST_LEVELS, "levels of objects"),
        (values, _MOST_VALUES, "values in enums"),
        (text, _MOST_TEXT, "characters in names and enums"),
    ):
        if found > most:
            return f"its schema has {found:,} {what}, and strict schemas at most {most:,}"
    return None


def _why_not(path: str, part: Any) -> str | None:
    if part is False:  # of additionalProperties; any other place is refused with the schema that it stands in
        return None
    if not isinstance(part, dict) or not part.keys() & {"type", "anyOf", "enum", "const", "$ref"}:
        return f"{path} may be of any type"
    if "$ref" in part:
        whole = len(part) == 1 and _REFERENCE.fullmatch(part["$ref"])
        return None if whole else f"{path} refers to {part['$ref']} in a way that strict schemas cannot"
    if unknown := sorted(part.keys() - _KEYWORDS):
        return f"{path} uses {', '.join(unknown)}"
    if part.get("format", "date") not in _FORMATS:
        return f"{path} has the format {part['format']}"
    if "object" in types_of(part):
        return _why_not_object(path, part)
    if "array" in types_of(part) and not isinstance(part.get("items"), dict):
        return f"{path} does not say what its items are"
    return None


def _why_not_object(path: str, part: Schema) -> str | None:
    names = part.get("properties", {})
    if optional := [name for name in names if name not in part.get("required", ())]:
        return f"{path}.{optional[0]} may be left out"
    if bare := [name for name, value in names.items() if not isinstance(value, dict)]:
        return f"{path}.{bare[0]} is not described"
    if unnamed := [name for name in part.get("required", ()) if name not in names]:
        return f"{path}.{unnamed[0]} is not described"
    if strange := [name for name in names if not _NAME.fullmatch(name)]:
        return f"{path} has the member {strange[0]!r}"
    if part.get("additionalProperties") is not False:
        return f"{path} takes members that it does not name"
    return None


def _levels(schema: Any) -> int:
    """How deep objects are nested, not followed through references."""
    pending, most = [(schema, 0)], 0
    while pending:
        part, level = pending.pop()
        if not isinstance(part, dict):
            continue
        level += "object" in types_of(part)
        most = max(most, level)
        inner = [*part.get("properties", {}).values(), part.get("items"), *part.get("anyOf", ())]
        pending += [(one, level) for one in inner]
    return most
