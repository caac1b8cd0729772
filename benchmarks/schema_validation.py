"""What validating arguments costs: the worst of hostile schemas at 64 kB and 1 MB, and a small usual call.

Each argument is made for its schema: what multiplies the work, what a backtracking engine never ends with, what is
quadratic for the library jsonschema.

    .venv/bin/python benchmarks/schema_validation.py [--json]

Times are CPU times, so that a busy machine changes them little. A child starts again for each judgement, which takes
some 70 ms of its time.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from jsonschema import Draft202012Validator

from toolonce.store.schema.validation import Heavy, validate_here

SIZES = (64_000, 1_000_000)
KINDS = ("string", "null", "object", "boolean", "integer")
_LIST = {"type": "array", "items": {"$ref": "#/$defs/nest"}}
NEST = {"$ref": "#/$defs/nest", "$defs": {"nest": {"anyOf": [_LIST, _LIST, _LIST]}}}
SMALL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "customer_id": {"type": "integer"},
        "amount": {"type": "number", "exclusiveMinimum": 0},
        "currency": {"type": "string", "enum": ["EUR", "USD"]},
        "note": {"type": "string", "maxLength": 200},
    },
    "required": ["customer_id", "amount"],
    "additionalProperties": False,
}
CALL = {"customer_id": 7, "amount": 12.5, "currency": "EUR", "note": "thanks"}
Make = Callable[[int], Any]


def _nested(size: int) -> Any:
    value: Any = 1
    for _ in range(min(size // 2, 400)):
        value = [value]
    return value


# Name -> schema of the one argument, and what makes a value of some bytes.
HOSTILE: dict[str, tuple[dict[str, Any], Make]] = {
    "plain integers": ({"items": {"type": "integer"}}, lambda size: [1] * (size // 3)),
    "integers with bounds": ({"items": {"type": "integer", "minimum": 0}}, lambda size: [1] * (size // 3)),
    "integers, five-way anyOf": ({"items": {"anyOf": [{"type": k} for k in KINDS]}}, lambda size: [1] * (size // 3)),
    "multipleOf of decimals": ({"items": {"multipleOf": 0.01}}, lambda size: [19.99] * (size // 7)),
    "multipleOf, largest over smallest": ({"items": {"multipleOf": 5e-324}}, lambda size: [1.7e308] * (size // 10)),
    "multipleOf, 4,000 digits": ({"items": {"multipleOf": 0.007}}, lambda size: [10**4_000] * (size // 4_002)),
    "uniqueItems, texts": ({"uniqueItems": True}, lambda size: [f"{n:06}" for n in range(size // 10)]),
    "uniqueItems, objects": ({"uniqueItems": True}, lambda size: [{"a": n} for n in range(size // 16)]),
    "pattern ^(a+)+$": ({"pattern": "^(a+)+$"}, lambda size: "a" * size + "!"),
    "pattern of 900 states": ({"pattern": "[ab]*a[ab]{900}c"}, lambda size: "abbaba" * (size // 6)),
    "patternProperties": (
        {"patternProperties": {"^(a+)+$": {}}}, lambda size: {"a" * 30 + f"{n}": 1 for n in range(size // 42)},
    ),
    "unevaluatedProperties": (
        {"unevaluatedProperties": {"type": "integer"}, "allOf": [{"properties": {"x": {}}}] * 5},
        lambda size: {f"{n}": 1 for n in range(size // 12)},
    ),
    "unevaluatedItems, contains": (
        {"unevaluatedItems": False, "anyOf": [{"contains": {"minimum": n}} for n in range(5)]},
        lambda size: [9] * (size // 3),
    ),
    "contains in contains": (
        {"contains": {"contains": {"const": "x"}}}, lambda size: [[1] * 1_000] * (size // 3_000),
    ),
    "enum of a long list": ({"items": {"enum": [list(range(9))]}}, lambda size: [list(range(10))] * (size // 32)),
    "anyOf inside anyOf": (NEST, _nested),
    "wrong at each place": ({"items": {"type": "string"}}, lambda size: [1] * (size // 3)),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SchemaRow:
    """One schema; CPU times in ms, of the slowest of three rounds."""

    schema: str
    bytes: int
    here_ms: float
    child_ms: float | None
    verdict: str


def measure(name: str, size: int) -> SchemaRow:
    inner, make = HOSTILE[name]
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {k: v for k, v in inner.items() if k != "$defs"}}}
    schema["$defs"] = inner.get("$defs", {})
    arguments = {"a": make(size)}
    here, child, verdict = 0.0, None, ""
    for _ in range(3):
        start = time.process_time()
        found = validate_here(schema, arguments)
        here = max(here, time.process_time() - start)
        if isinstance(found, Heavy):
            start = children()
            found = found.run()
            child = max(child or 0.0, children() - start)
        verdict = found.code if found else "fits"
    return SchemaRow(name, len(json.dumps(arguments)), 1e3 * here, child and 1e3 * child, verdict)


def children() -> float:
    """CPU seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def small(work: Callable[[], Any]) -> float:
    """Microseconds of one usual call: the median of nine rounds."""
    rounds = []
    for _ in range(9):
        start = time.process_time()
        for _ in range(2_000):
            work()
        rounds.append((time.process_time() - start) / 2_000)
    return statistics.median(rounds) * 1e6


def line(row: SchemaRow) -> str:
    child = "-" if row.child_ms is None else f"{row.child_ms:.0f}"
    return f"| {row.schema} | {row.bytes:,} | {row.here_ms:.1f} | {child} | {row.verdict} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    args = parser.parse_args()
    library = Draft202012Validator(SMALL)
    ours, theirs = small(lambda: validate_here(SMALL, CALL)), small(lambda: list(library.iter_errors(CALL)))
    rows = [measure(name, size) for size in SIZES for name in HOSTILE]
    half = len(HOSTILE)
    worst = {size: max(part, key=_whole) for size, part in zip(SIZES, (rows[:half], rows[half:]), strict=True)}
    if args.json:
        shown = {"small_us": ours, "jsonschema_small_us": theirs, "rows": [asdict(row) for row in rows]}
        print(json.dumps(shown, indent=1))
        return
    print(f"a usual call of four arguments: {ours:.1f} us; jsonschema alone: {theirs:.1f} us\n")
    print("| schema | bytes | here ms | child ms | verdict |\n|---|---|---|---|---|")
    for row in rows:
        print(line(row))
    for size, row in worst.items():
        print(f"\nworst of {size} bytes: {_whole(row):.0f} ms ({row.schema}), {row.here_ms:.0f} of them in the caller")


def _whole(row: SchemaRow) -> float:
    return row.here_ms + (row.child_ms or 0.0)


if __name__ == "__main__":
    main()
