"""Do the arguments fit the tool's schema? JSON Schema 2020-12, strict: nothing is coerced, defaults are not filled in.

Messages name the place and what was expected, so that a model can correct itself; they never repeat values, which
may be secret. Nothing is ever fetched: a schema is what it holds, and what the specifications of JSON Schema hold.
"""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # it has no types
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from .outcomes import Failure

ERRORS_TOLD = 5
"""More would not help a model to mend its call."""
_VALIDATORS: dict[int, Draft202012Validator] = {}
_VALIDATORS_KEPT = 512


def check_schema(schema: dict[str, Any]) -> str | None:
    """What is wrong with a schema of ours, in one line; None where it is fine."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"{_place(error)}: {error.message}"
    return None


def find_foreign_reference(schema: dict[str, Any]) -> str | None:
    """The first ``$ref`` or ``$dynamicRef`` to what a valid schema does not hold; None where there is none."""
    root = DRAFT202012.create_resource(schema)
    pending: list[tuple[Any, Any]] = [(schema, REGISTRY.resolver_with_root(root))]
    seen: set[int] = set()
    while pending:
        part, resolver = pending.pop()
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        for reference in filter(None, map(part.get, ("$ref", "$dynamicRef"))):
            try:
                found = resolver.lookup(reference)
            except (Unresolvable, ValueError):  # ValueError: no URL
                return str(reference)
            if not isinstance(found.contents, (dict, bool)):  # a place in it, but no schema
                return str(reference)
            pending.append((found.contents, found.resolver))
        inner = map(DRAFT202012.create_resource, DRAFT202012.subresources_of(part))
        pending.extend((resource.contents, resolver.in_subresource(resource)) for resource in inner)
    return None


def is_endless(schema: dict[str, Any]) -> bool:
    """Whether a schema refers to itself at once, without a step into the arguments."""
    try:
        list(_validator(schema).iter_errors({}))
    except RecursionError:
        return True
    return False


def validate(schema: dict[str, Any], arguments: Any) -> Failure | None:
    """The refusal for arguments that do not fit, with code ``invalid_arguments``; None where they fit.

    The failure's details hold ``errors``: a list of ``path`` (``$.a[0].b``), ``expected`` and the schema's keyword.
    """
    try:
        found = list(_validator(schema).iter_errors(arguments))
    except Unresolvable as error:  # published by an earlier release, which did not look for such
        return _not_judged(f"refers to {error.ref!r}, which it does not hold")
    except RecursionError:
        return _not_judged("refers to itself without end, or the arguments are too deep")
    except TypeError:
        return _not_judged("refers to what is no schema")
    if not found:
        return None
    found.sort(key=lambda error: list(map(str, error.path)))
    errors = [{"path": _place(e), "expected": _expected(e), "keyword": str(e.validator)} for e in found[:ERRORS_TOLD]]
    lines = "; ".join(f"{error['path']}: {error['expected']}" for error in errors)
    more = f" (and {len(found) - ERRORS_TOLD} more)" if len(found) > ERRORS_TOLD else ""
    return Failure(
        "invalid_arguments", f"the arguments do not fit the tool's schema: {lines}{more}", {"errors": errors}
    )


def _not_judged(why: str) -> Failure:
    return Failure("invalid_arguments", f"the arguments cannot be judged: the tool's schema {why}", {"errors": []})


def _validator(schema: dict[str, Any]) -> Draft202012Validator:
    """One per schema object, made once: a spec keeps its schema for as long as it lives."""
    known = _VALIDATORS.get(id(schema))
    if known is None or known.schema is not schema:  # an id comes again once its bearer is gone
        if len(_VALIDATORS) >= _VALIDATORS_KEPT:
            _VALIDATORS.clear()
        known = _VALIDATORS[id(schema)] = Draft202012Validator(schema, registry=REGISTRY)
    return known


def _place(error: ValidationError | SchemaError) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
    return "$" + "".join(steps)


def _expected(error: ValidationError) -> str:
    """The rule in words. Built from the schema's side only."""
    rule = error.validator_value
    match error.validator:
        case "type":
            return f"expected {' or '.join(rule) if isinstance(rule, list) else rule}, got {_kind(error.instance)}"
        case "required":
            missing = [name for name in error.schema["required"] if name not in error.instance]  # type: ignore[index,operator]
            return f"missing {', '.join(missing)}"
        case "additionalProperties" | "unevaluatedProperties":
            known = sorted(error.schema.get("properties", {})) if isinstance(error.schema, dict) else []
            return f"has a member that is not allowed; known members: {', '.join(known) or 'none'}"
        case "enum":
            return f"expected one of {json.dumps(rule)}"
        case "const":
            return f"expected {json.dumps(rule)}"
        case "pattern":
            return f"expected text that matches {rule}"
        case _:
            return f"breaks the rule {error.validator}: {json.dumps(rule)[:200]}"


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
