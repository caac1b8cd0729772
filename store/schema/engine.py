"""Walking arguments along a schema, step by step, with a bound on the steps: the frame of the keywords' rules.

A step is a look at one value under one part of a schema, one rule of that part, or one comparison, so that the same
arguments cost the same on every machine. Verdicts are jsonschema's, but for decimals, which are exact, and patterns,
which are ECMA-262; property tests compare the two. Knows no keyword.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # it has no types
from referencing.jsonschema import DRAFT202012

DEPTH = 2_000
"""Parts of a schema that may be entered one inside the other. Python's own bound is lower where it is not raised."""
FAULTS_KEPT = 100
"""A walk ends once so many places are known to be wrong."""
LOOKUP_STEPS = 20
"""A reference that has to be looked up again each time, in schemas with names of their own, costs as much as this."""


class Other:
    """The type of what is not a JSON value; only rules for all values look at it."""


TYPES: tuple[type, ...] = (str, int, float, bool, type(None), list, dict, Other)
Rule = Callable[[Any, "Walk"], bool]
"""Whether a value of a known type fits; where faults are wanted it also notes them."""
Rules = Mapping[type, Rule]
"""One keyword's rule for each type of value that it applies to."""


class TooCostly(Exception):  # an answer, not an error
    """More steps than are allowed."""


class TooDeep(Exception):  # an answer, not an error
    """Values or references nested beyond `DEPTH`."""


class NoSchema(Exception):
    """A reference leads to a place that is not a schema."""


class Enough(Exception):  # an answer, not an error
    """`FAULTS_KEPT` faults are noted."""


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """One place where a value breaks a rule.

    Attributes:
        path: names and positions from the arguments down to the value.
        keyword: None where the schema is ``false``.
    """

    path: tuple[str | int, ...]
    keyword: str | None
    rule: Any
    schema: Any
    value: Any


class Walk:
    """One running validation.

    Attributes:
        left: steps that may still be taken.
        found: the faults so far; None where only the verdict is wanted.
    """

    __slots__ = ("depth", "found", "left", "path")

    def __init__(self, steps: int, found: list[SchemaFault] | None = None) -> None:
        self.left = steps
        self.depth = 0
        self.found = found
        self.path: list[str | int] = []

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise TooCostly

    def fails(self, keyword: str | None, rule: Any, schema: Any, value: Any) -> bool:
        """Note a fault; always False, for a rule to return."""
        if self.found is not None:
            self.found.append(SchemaFault(tuple(self.path), keyword, rule, schema, value))
            if len(self.found) >= FAULTS_KEPT:
                raise Enough
        return False

    def fits(self, node: Node, value: Any) -> bool:
        """The verdict alone: faults in here are none of the whole."""
        kept, self.found = self.found, None
        fit = node.test(value, self)
        self.found = kept
        return fit

    def each(self, places: Iterable[tuple[str | int, Any]], node: Node) -> bool:
        """Whether the values at these places, names or positions, all fit."""
        fit = True
        for step, value in places:
            self.path.append(step)
            fit = node.test(value, self) and fit
            self.path.pop()
            if not fit and self.found is None:
                return False
        return fit


class Node:
    """One part of a schema, made ready at its first use."""

    __slots__ = ("_engine", "_resolver", "_table", "schema")

    def __init__(self, engine: Engine, schema: Any, resolver: Any) -> None:
        self.schema = schema
        self._engine = engine
        self._resolver = resolver
        self._table: dict[type, tuple[Rule, ...]] = {}

    def test(self, value: Any, walk: Walk) -> bool:
        """Whether the value fits.

        Raises:
            TooCostly, TooDeep, RecursionError, Enough: the walk ended before there was a verdict.
            Unresolvable, NoSchema, PatternRefused: the schema cannot be used.
        """
        table = self._table or self._ready()
        rules = table.get(type(value))
        if rules is None:
            rules = table[_type_of(value)]
        walk.left -= 1 + len(rules)
        if walk.left < 0:
            raise TooCostly
        if not rules:
            return True
        walk.depth += 1
        if walk.depth > DEPTH:
            raise TooDeep
        fit = True
        for rule in rules:
            if not rule(value, walk):
                fit = False
                if walk.found is None:
                    break
        walk.depth -= 1
        return fit

    def takes_unseen(self, values: Iterable[Any]) -> bool:
        """Whether the types of the values say already that all fit."""
        table = self._table or self._ready()
        return all(table.get(kind) == () for kind in set(map(type, values)))

    def part(self, schema: Any) -> Node:
        """The node of a schema inside this one."""
        inner = self._resolver.in_subresource(DRAFT202012.create_resource(schema))
        return self._engine.node(schema, inner)

    def referred(self, reference: str) -> Node:
        """The node that a reference leads to, from here."""
        found = self._resolver.lookup(reference)
        if not isinstance(found.contents, (dict, bool)):  # a place in it, but no schema
            raise NoSchema(reference)
        return self._engine.node(found.contents, found.resolver)

    @property
    def is_plain(self) -> bool:
        """Whether a reference leads to the same part each time."""
        return self._engine.is_plain

    def _ready(self) -> dict[type, tuple[Rule, ...]]:
        table: dict[type, tuple[Rule, ...]] = dict.fromkeys(TYPES, ())
        for rules in self._engine.rules_of(self):
            for kind, rule in rules.items():
                table[kind] = (*table[kind], rule)
        self._table = table
        return table


class Engine:
    """A whole schema with the rules of its keywords.

    Args:
        rules_of: gives the rules of one part, keyword by keyword.
    """

    def __init__(self, schema: Any, rules_of: Callable[[Node], Iterable[Rules]]) -> None:
        self.rules_of = rules_of
        self.is_plain = is_plain(schema)
        self._nodes: dict[int, Node] = {}
        root = DRAFT202012.create_resource(schema)
        self.root = self.node(schema, REGISTRY.resolver_with_root(root))

    def node(self, schema: Any, resolver: Any) -> Node:
        """The one node of a part; in a schema with names of its own a new one, since its references may differ."""
        if not self.is_plain:
            return Node(self, schema, resolver)
        known = self._nodes.get(id(schema))
        if known is None or known.schema is not schema:
            known = self._nodes[id(schema)] = Node(self, schema, resolver)
        return known


def is_plain(schema: Any) -> bool:
    """Whether all its references are places in itself: nothing in it has a name of its own or depends on the way."""
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            if "$dynamicRef" in part or ("$id" in part and part is not schema):
                return False
            if not str(part.get("$ref", "#")).startswith("#"):
                return False
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)
    return True


def _type_of(value: Any) -> type:
    """The JSON type of a value of a subclass."""
    for kind in (bool, int, float, str, list, dict):
        if isinstance(value, kind):
            return kind
    return Other
