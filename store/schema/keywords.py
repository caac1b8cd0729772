"""The keywords of JSON Schema 2020-12 that look at a value itself: its type, size, text, members' names, equality."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .engine import TYPES, Node, Rule, Rules, Walk
from .json_equality import canonical, exact, is_multiple
from .patterns import Pattern

_NAMED: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}


def failing(node: Node, keyword: str, rule: Any, holds: Callable[[Any, Walk], bool]) -> Rule:
    """The rule that notes a fault where the condition does not hold."""

    def check(value: Any, walk: Walk) -> bool:
        return holds(value, walk) or walk.fails(keyword, rule, node.schema, value)

    return check


def _type(node: Node, rule: Any) -> Rules:
    named = [rule] if isinstance(rule, str) else rule
    fitting = {kind for name in named for kind in _NAMED[name]}
    wrong = failing(node, "type", rule, lambda value, walk: False)
    rules = {kind: wrong for kind in TYPES if kind not in fitting}
    if "integer" in named and float not in fitting:
        rules[float] = failing(node, "type", rule, lambda value, walk: value.is_integer())
    return rules


def _numbers(node: Node, keyword: str, rule: Any, compare: Callable[[Any, Any], bool]) -> Rules:
    bound = exact(rule)
    check = failing(node, keyword, rule, lambda value, walk: compare(exact(value), bound))
    return {int: check, float: check}


def _multiple_of(node: Node, rule: Any) -> Rules:
    check = failing(node, "multipleOf", rule, lambda value, walk: is_multiple(value, rule, walk.spend))
    return {int: check, float: check}


def _size(kind: type, keyword: str, compare: Callable[[Any, Any], bool]) -> Callable[[Node, Any], Rules]:
    def build(node: Node, rule: Any) -> Rules:
        return {kind: failing(node, keyword, rule, lambda value, walk: compare(len(value), rule))}

    return build


def _pattern(node: Node, rule: str) -> Rules:
    pattern = Pattern(rule)

    def holds(value: str, walk: Walk) -> bool:
        walk.spend(pattern.cost(value))
        return pattern.matches(value)

    return {str: failing(node, "pattern", rule, holds)}


def _enum(node: Node, rule: list[Any]) -> Rules:
    return _one_of(node, "enum", rule, rule)


def _const(node: Node, rule: Any) -> Rules:
    return _one_of(node, "const", rule, [rule])


def _one_of(node: Node, keyword: str, rule: Any, values: list[Any]) -> Rules:
    """Equality with one of several values. Texts, the usual case, are looked up as they are."""
    texts = frozenset(value for value in values if isinstance(value, str))
    others = frozenset(canonical(value, lambda _: None) for value in values if not isinstance(value, str))
    of_other = failing(node, keyword, rule, lambda value, walk: bool(others) and canonical(value, walk.spend) in others)
    return dict.fromkeys(TYPES, of_other) | {str: failing(node, keyword, rule, lambda value, walk: value in texts)}


def _unique_items(node: Node, rule: bool) -> Rules:
    def holds(value: list[Any], walk: Walk) -> bool:
        return len({canonical(item, walk.spend) for item in value}) == len(value)

    return {list: failing(node, "uniqueItems", rule, holds)} if rule else {}


def _required(node: Node, rule: list[str]) -> Rules:
    def holds(value: dict[str, Any], walk: Walk) -> bool:
        walk.spend(len(rule))
        return all(name in value for name in rule)

    return {dict: failing(node, "required", rule, holds)}


def _dependent_required(node: Node, rule: dict[str, list[str]]) -> Rules:
    def holds(value: dict[str, Any], walk: Walk) -> bool:
        walk.spend(len(rule) + sum(len(names) for name, names in rule.items() if name in value))
        return all(name in value for has, names in rule.items() if has in value for name in names)

    return {dict: failing(node, "dependentRequired", rule, holds)}


VALUE_KEYWORDS: dict[str, Callable[[Node, Any], Rules]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "multipleOf": _multiple_of,
    "minimum": lambda node, rule: _numbers(node, "minimum", rule, operator.ge),
    "maximum": lambda node, rule: _numbers(node, "maximum", rule, operator.le),
    "exclusiveMinimum": lambda node, rule: _numbers(node, "exclusiveMinimum", rule, operator.gt),
    "exclusiveMaximum": lambda node, rule: _numbers(node, "exclusiveMaximum", rule, operator.lt),
    "minLength": _size(str, "minLength", operator.ge),
    "maxLength": _size(str, "maxLength", operator.le),
    "minItems": _size(list, "minItems", operator.ge),
    "maxItems": _size(list, "maxItems", operator.le),
    "minProperties": _size(dict, "minProperties", operator.ge),
    "maxProperties": _size(dict, "maxProperties", operator.le),
    "pattern": _pattern,
    "uniqueItems": _unique_items,
    "required": _required,
    "dependentRequired": _dependent_required,
}
