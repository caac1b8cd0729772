"""One validation with a limit of steps, and the messages for what is wrong; also in a child process, over a pipe.

Messages name the place and what was expected, so that a model can correct itself; they never repeat values, which
may be secret. Nothing is ever fetched: a schema is what it holds, and what the specifications of JSON Schema hold.
"""

from __future__ import annotations

import json
import resource
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from referencing.exceptions import Unresolvable

from ..model.outcomes import Failure
from .applicators import rules_of
from .engine import FAULTS_KEPT, Engine, Enough, NoSchema, SchemaFault, TooCostly, TooDeep, Walk
from .patterns import PatternRefused

STEPS = 4_000_000
"""Most steps of one validation. 1 MB of numbers under a plain schema takes a quarter to a half of them."""
ERRORS_TOLD = 5
"""More would not help a model to correct its call."""
CHILD_MEMORY = 2 * 2**30
"""Bytes of address space of a child that validates."""
CHILD_CPU_S = 30
"""CPU seconds after which the kernel ends a child whose parent is gone."""
_CHILD_FRAMES = 30_000
"""Python frames for `DEPTH` parts inside each other, each of which takes up to eight."""
_ENGINES: dict[int, Engine] = {}
_ENGINES_KEPT = 512


def validate_in_steps(schema: dict[str, Any], arguments: Any, steps: int) -> Failure | None:
    """The refusal for arguments that do not fit, None where they fit; at most twice `steps` are taken.

    Raises:
        TooCostly: there is no verdict within so many steps.
        RecursionError, TooDeep: the same, for values or references that are nested too deeply.
    """
    try:
        root = _engine(schema).root
        if root.test(arguments, Walk(steps)):
            return None
        return _refusal(_faults(root, arguments, steps))
    except (TooCostly, TooDeep, RecursionError):
        raise
    except Exception as error:
        return _not_judged(error)


def too_costly(steps: int = STEPS) -> Failure:
    """The refusal of arguments that would take more steps than are allowed."""
    return Failure(
        "too_costly",
        "the arguments cannot be validated by the tool's schema: they are too large for it, or nested too deeply "
        f"(more than {steps:,} steps); send less at once",
        {"errors": [], "steps": steps},
    )


def is_endless(schema: dict[str, Any]) -> bool:
    """Whether a schema refers to itself at once, without a step into the arguments.

    Raises:
        PatternRefused: a pattern that cannot be matched in bounded time, on the way.
    """
    root = Engine(schema, rules_of).root
    samples: tuple[Any, ...] = ({}, [], "", 0, None)
    for sample in samples:
        try:
            root.test(sample, Walk(STEPS))
        except (RecursionError, TooDeep, TooCostly):
            return True
    return False


def serve() -> None:
    """Be the child: read schema and arguments from stdin, write the failure or null to stdout."""
    for limit, most in ((resource.RLIMIT_AS, CHILD_MEMORY), (resource.RLIMIT_CPU, CHILD_CPU_S)):
        hard = resource.getrlimit(limit)[1]
        if hard == resource.RLIM_INFINITY or hard >= most:
            resource.setrlimit(limit, (most, hard))
    sys.setrecursionlimit(_CHILD_FRAMES)
    try:
        asked = json.loads(sys.stdin.buffer.read())
        failure = validate_in_steps(asked["schema"], asked["arguments"], STEPS)
    except (TooCostly, TooDeep, RecursionError, MemoryError):
        failure = too_costly()
    sys.stdout.write(json.dumps(asdict(failure) if failure else None))


def _engine(schema: dict[str, Any]) -> Engine:
    """One per schema object, made once: a spec keeps its schema for as long as it lives."""
    known = _ENGINES.get(id(schema))
    if known is None or known.root.schema is not schema:  # an id comes again once its bearer is gone
        if len(_ENGINES) >= _ENGINES_KEPT:
            _ENGINES.clear()
        known = _ENGINES[id(schema)] = Engine(schema, rules_of)
    return known


def _faults(root: Any, arguments: Any, steps: int) -> list[SchemaFault]:
    """What is wrong, as far as it can be found in so many steps."""
    walk = Walk(steps, [])
    assert walk.found is not None
    with suppress(TooCostly, Enough):
        root.test(arguments, walk)
    return sorted(walk.found, key=lambda fault: list(map(str, fault.path)))


def _refusal(found: list[SchemaFault]) -> Failure:
    told = found[:ERRORS_TOLD]
    errors = [{"path": _place(one), "expected": _expected(one), "keyword": str(one.keyword)} for one in told]
    lines = "; ".join(f"{error['path']}: {error['expected']}" for error in errors)
    more = ""
    if len(found) > ERRORS_TOLD:
        more = f" (and {len(found) - ERRORS_TOLD} more)" if len(found) < FAULTS_KEPT else " (and many more)"
    where = f": {lines}{more}" if lines else ""
    return Failure("invalid_arguments", f"the arguments do not fit the tool's schema{where}", {"errors": errors})


def _not_judged(error: Exception) -> Failure:
    match error:
        case Unresolvable():  # published by an earlier release, which did not look for such
            why = f"the tool's schema refers to {error.ref!r}, which it does not hold"
        case NoSchema():
            why = "the tool's schema refers to what is not a schema"
        case PatternRefused():
            why = f"a pattern of the tool's schema {error}"
        case _:  # its text may hold the arguments
            why = f"{type(error).__name__} while they were held against the tool's schema"
    return Failure("invalid_arguments", f"the arguments cannot be validated: {why}", {"errors": []})


def _place(fault: SchemaFault) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in fault.path)
    return "$" + "".join(steps)


def _expected(fault: SchemaFault) -> str:
    """The rule in words. Built from the schema's side only."""
    rule = fault.rule
    match fault.keyword:
        case "type":
            return f"expected {' or '.join(rule) if isinstance(rule, list) else rule}, got {_kind(fault.value)}"
        case "required":
            return f"missing {', '.join([name for name in rule if name not in fault.value])}"
        case "additionalProperties" | "unevaluatedProperties":
            known = sorted(fault.schema.get("properties", {}))
            return f"has a member that is not allowed; known members: {', '.join(known) or 'none'}"
        case "enum":
            return f"expected one of {json.dumps(rule)}"
        case "const":
            return f"expected {json.dumps(rule)}"
        case "pattern":
            return f"expected text that matches {rule}"
        case None:
            return "is not allowed here"
        case _:
            return f"breaks the rule {fault.keyword}: {json.dumps(rule)[:200]}"


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
