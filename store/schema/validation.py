"""Do the arguments fit the tool's schema? JSON Schema 2020-12, strict: nothing is coerced, defaults are not filled in.

Validation of few steps runs in the caller's thread; one of more steps, in a child process that can be killed. Beyond a
fixed number of steps the arguments are refused. Any error during validation is a refusal, never an exception.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # it has no types
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from ..model.outcomes import Failure
from .engine import TooCostly, TooDeep
from .patterns import Pattern, PatternRefused
from .verdict import STEPS, is_endless, too_costly, validate_in_steps

__all__ = [
    "Heavy",
    "check_schema",
    "find_foreign_reference",
    "find_multiplying_choice",
    "find_unbounded_pattern",
    "is_endless",
    "validate",
    "validate_here",
]  # fmt: skip

STEPS_HERE = 200_000
"""Steps that are taken where it is asked: some 50 ms, in which an event loop stands still. 64 kB of numbers under a
plain schema need no more."""
CHILD_S = 60.0
"""How long a child may take. Its steps come to some 1.3 s of CPU time, so only an overloaded machine gets here."""
_CHILD = "import sys; sys.path[:] = sys.argv[1:]; from toolonce.store.schema.verdict import serve; serve()"
_AT_ONCE = 2
"""Children of one process; more would take the cores from everyone else."""
log = logging.getLogger("toolonce.validation")


def check_schema(schema: dict[str, Any]) -> str | None:
    """What is wrong with a schema of ours, in one line; None where it is fine."""
    from jsonschema import Draft202012Validator  # at registration only: validation does without it

    # Without formats: Python would validate the patterns, which are `find_unbounded_pattern`'s.
    for error in Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema):
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
        return f"${''.join(steps)}: {error.message}"
    return None


def find_unbounded_pattern(schema: dict[str, Any]) -> str | None:
    """The first pattern of a valid schema that cannot be matched in bounded time, and why; None where all can."""
    for part, _ in _parts(schema):
        for text in (*filter(None, [part.get("pattern")]), *part.get("patternProperties", ())):
            try:
                Pattern(text)
            except PatternRefused as refused:
                return f"{text!r} {refused}"
    return None


def find_multiplying_choice(schema: dict[str, Any]) -> str | None:
    """A keyword of a valid schema by which each level of nested arguments multiplies the steps; None: there is none."""
    for part, resolver in _parts(schema):
        for keyword in ("anyOf", "oneOf"):
            members = part.get(keyword, ())
            back = [one for one in members if any(found is part for found, _ in _parts(one, resolver))]
            if len(back) > 1:
                return keyword
    return None


def find_foreign_reference(schema: dict[str, Any]) -> str | None:
    """The first ``$ref`` or ``$dynamicRef`` to what a valid schema does not hold; None where there is none."""
    try:
        for _ in _parts(schema):
            pass
    except _Foreign as foreign:
        return str(foreign)
    return None


def validate(schema: dict[str, Any], arguments: Any) -> Failure | None:
    """The refusal for arguments that do not fit; None where they fit. Waits for the child where one is needed.

    Codes: ``invalid_arguments``; ``too_costly`` where there is no verdict within `STEPS` steps. The failure's details
    hold ``errors``: a list of ``path`` (``$.a[0].b``), ``expected`` and the schema's keyword.
    """
    verdict = validate_here(schema, arguments)
    return verdict.run() if isinstance(verdict, Heavy) else verdict


def validate_here(schema: dict[str, Any], arguments: Any) -> Failure | Heavy | None:
    """The same without a wait: what takes more than `STEPS_HERE` steps comes back as work to be done elsewhere."""
    try:
        return validate_in_steps(schema, arguments, STEPS_HERE)
    except (TooCostly, TooDeep, RecursionError):
        return Heavy(schema, arguments)


@dataclass(frozen=True, slots=True)
class Heavy:
    """A validation that is left to a child process."""

    schema: dict[str, Any]
    arguments: Any

    def run(self) -> Failure | None:
        """Start a child and wait for its verdict; for a thread that may wait."""
        try:
            asked = json.dumps({"schema": self.schema, "arguments": self.arguments}).encode()
        except (TypeError, ValueError, RecursionError, MemoryError):  # no JSON, or nested too deeply to be written
            return too_costly()
        with _CHILDREN.free:
            return self._ask(asked)

    def start(self) -> Future[Failure | None]:
        """The same in a thread of our own, for those who must not wait: an event loop, a consumer of many tenants."""
        return _CHILDREN.waiting.submit(self.run)

    def _ask(self, asked: bytes) -> Failure | None:
        words = [_interpreter(), "-I", "-c", _CHILD, *sys.path]
        try:
            ended = subprocess.run(words, input=asked, capture_output=True, timeout=CHILD_S, start_new_session=True)
        except subprocess.TimeoutExpired:
            return too_costly()
        except OSError as error:
            return self._here(str(error))
        if ended.returncode < 0:  # killed: by the kernel for its memory, or by a person
            return too_costly()
        if ended.returncode or not ended.stdout:
            return self._here(ended.stderr.decode(errors="replace").strip().rpartition("\n")[2])
        found = json.loads(ended.stdout)
        return Failure(**found) if found else None

    def _here(self, why: str) -> Failure | None:
        log.warning("no process to validate large arguments in, so they are validated here: %s", why)
        try:
            return validate_in_steps(self.schema, self.arguments, STEPS)
        except (TooCostly, TooDeep, RecursionError):
            return too_costly()


class _ValidationChildren:
    """The children of this process, and the threads that wait for them."""

    def __init__(self) -> None:
        self.free = threading.BoundedSemaphore(_AT_ONCE)
        self.waiting = ThreadPoolExecutor(_AT_ONCE, "toolonce-validation")


_CHILDREN = _ValidationChildren()


def _forget_children() -> None:
    """A forked process has neither the threads nor the children of its parent."""
    global _CHILDREN
    _CHILDREN = _ValidationChildren()


os.register_at_fork(after_in_child=_forget_children)


def _interpreter() -> str:
    """A program that embeds Python names itself as the executable."""
    if "python" in os.path.basename(sys.executable or "").lower():
        return sys.executable
    return os.path.join(sys.prefix, "bin", "python3")


class _Foreign(Exception):
    """A reference to what the schema does not hold."""


def _parts(schema: Any, resolver: Any = None) -> Iterator[tuple[dict[str, Any], Any]]:
    """All parts of a valid schema that can apply, each once, with its resolver; of a part, with the resolver there.

    Raises:
        _Foreign: on the way, at a reference to what is not there.
    """
    if resolver is None:
        resolver = REGISTRY.resolver_with_root(DRAFT202012.create_resource(schema))
    pending: list[tuple[Any, Any]] = [(schema, resolver)]
    seen: set[int] = set()
    while pending:
        part, resolver = pending.pop()
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        yield part, resolver
        references = filter(None, map(part.get, ("$ref", "$dynamicRef")))
        pending.extend(_referred(reference, resolver) for reference in references)
        inner = map(DRAFT202012.create_resource, DRAFT202012.subresources_of(part))
        pending.extend((resource.contents, resolver.in_subresource(resource)) for resource in inner)


def _referred(reference: str, resolver: Any) -> tuple[Any, Any]:
    try:
        found = resolver.lookup(reference)
    except (Unresolvable, ValueError, TypeError):  # ValueError: no URL; TypeError: a step into true or false
        raise _Foreign(reference) from None
    if not isinstance(found.contents, (dict, bool)):  # a place in it, but no schema
        raise _Foreign(reference)
    return found.contents, found.resolver
