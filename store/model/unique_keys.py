"""Unique keys: which calls of a tool are the same action, whatever their ids and their other arguments. Pure.

A tool names the arguments that identify its effect (`unique_by`). Calls of one scope, or of one tenant, in which these
are equal share a unique key, and one of them has it. Made like a fingerprint: over the arguments as decoded, and keyed
where a keyring is configured. A tool that holds duplicates names all its arguments in this way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .identity import VERSION, canonical, digest
from .keyring import Keyring
from .specs import ToolSpec

_SCALARS = {"string", "integer", "number", "boolean", "null"}
_MOST_REFERENCES = 20


class Owner(NamedTuple):
    """Whose calls are compared."""

    namespace: str
    scope: str
    tenant: str


def unique_keys(spec: ToolSpec, owner: Owner, arguments: Mapping[str, Any], keyring: Keyring) -> tuple[str, ...]:
    """The unique key of a call under every configured key, the newest first, then the one without a key: a call is
    found under whichever it was stored. Empty where its tool has none.

    Args:
        arguments: that the tool's schema accepts, so that each member is there.
    """
    if spec.unique_by:
        whose = owner.tenant if spec.unique_in == "tenant" else owner.scope
        parts = ("unique", whose, spec.name, canonical({name: arguments[name] for name in spec.unique_by}))
    elif spec.hold_duplicates:
        parts = ("equal", owner.scope, spec.name, canonical(arguments))
    else:
        return ()
    keys = [*[key.for_fingerprints for key in keyring.keys], None]
    return tuple([digest(VERSION, owner.namespace, *parts, key=key) for key in keys])


def check(spec: ToolSpec) -> str | None:
    """What is wrong with a tool's unique key, in one line with the way out."""
    if not spec.unique_by:
        if spec.unique_for_ms or spec.unique_in != "scope":
            return "unique_in and unique_for are about unique_by: name the arguments that identify the effect"
        return None
    if spec.unique_in not in ("scope", "tenant"):
        return f"unique_in is 'scope' or 'tenant', not {spec.unique_in!r}"
    if spec.hold_duplicates:
        return "hold_duplicates and unique_by answer the same question: ask a person, or let one call stand; drop one"
    for name in spec.unique_by:
        if fault := _fault_of(name, spec):
            return f"unique_by names {name!r}, which {fault}"
    return None


def _fault_of(name: str, spec: ToolSpec) -> str | None:
    schema = spec.schema
    known = schema.get("properties", {})
    if name not in known:
        return f"is not an argument of it; there are {', '.join(known) or 'none'}"
    if name not in schema.get("required", ()):
        return "may be left out: give it no default, or list it in the schema's 'required'"
    if any(secret.split(".")[0] == name for secret in spec.secret):
        return "is secret: name an argument that is not, for example an order's number"
    if not _is_scalar(known[name], schema, _MOST_REFERENCES):
        return "may be a list or an object: give it the type of a text, a number or a truth value"
    return None


def _is_scalar(node: Any, schema: Mapping[str, Any], references: int) -> bool:
    """Whether everything that this part of a schema accepts is a text, a number, a truth value or null."""
    if not isinstance(node, Mapping) or references == 0:
        return False
    types = node.get("type", ())
    if types and _SCALARS.issuperset([types] if isinstance(types, str) else types):
        return True
    if "const" in node or "enum" in node:
        return not any(isinstance(value, dict | list) for value in [node.get("const"), *node.get("enum", ())])
    if isinstance(reference := node.get("$ref"), str) and reference.startswith("#/"):
        return _is_scalar(_at(schema, reference), schema, references - 1)
    choices = node.get("anyOf") or node.get("oneOf") or ()
    some = node.get("allOf") or ()
    return (bool(choices) and all(_is_scalar(one, schema, references - 1) for one in choices)) or any(
        _is_scalar(one, schema, references - 1) for one in some
    )


def _at(schema: Mapping[str, Any], reference: str) -> Any:
    found: Any = schema
    for part in reference.removeprefix("#/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found
