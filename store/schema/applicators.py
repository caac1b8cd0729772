"""The keywords of JSON Schema 2020-12 that apply schemas: to members and items, several to one value, by reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .engine import LOOKUP_STEPS, TYPES, Node, Rule, Rules, Walk
from .evaluated import evaluated_items, evaluated_names
from .keywords import VALUE_KEYWORDS, failing
from .patterns import Pattern


def rules_of(node: Node) -> Iterator[Rules]:
    """The rules of one part of a schema, in the order of its keywords."""
    if not isinstance(node.schema, dict):
        if not node.schema:
            yield _for_all(lambda value, walk: walk.fails(None, False, node.schema, value))
        return
    for keyword, rule in node.schema.items():
        if build := KEYWORDS.get(keyword):
            yield build(node, rule)


def _for_all(rule: Rule) -> Rules:
    return dict.fromkeys(TYPES, rule)


def _properties(node: Node, rule: dict[str, Any]) -> Rules:
    parts = {name: node.part(schema) for name, schema in rule.items()}

    def check(value: dict[str, Any], walk: Walk) -> bool:
        walk.spend(len(parts))
        fit = True
        for name, part in parts.items():
            if name in value:
                walk.path.append(name)
                fit = part.test(value[name], walk) and fit
                walk.path.pop()
                if not fit and walk.found is None:
                    return False
        return fit

    return {dict: check}


def _pattern_properties(node: Node, rule: dict[str, Any]) -> Rules:
    parts = [(Pattern(text), node.part(schema)) for text, schema in rule.items()]

    def check(value: dict[str, Any], walk: Walk) -> bool:
        fit = True
        for pattern, part in parts:
            named = [(name, inner) for name, inner in value.items() if _matches(pattern, name, walk)]
            fit = walk.each(named, part) and fit
        return fit

    return {dict: check}


def _matches(pattern: Pattern, name: str, walk: Walk) -> bool:
    walk.spend(1 + pattern.cost(name))
    return pattern.matches(name)


def _additional_properties(node: Node, rule: Any) -> Rules:
    part = node.part(rule)
    known = node.schema.get("properties", {})
    patterns = [Pattern(text) for text in node.schema.get("patternProperties", {})]

    def check(value: dict[str, Any], walk: Walk) -> bool:
        walk.spend(len(value))
        extra = [name for name in value if name not in known]
        if patterns:
            extra = [name for name in extra if not any(_matches(pattern, name, walk) for pattern in patterns)]
        if rule is False:
            return not extra or walk.fails("additionalProperties", rule, node.schema, value)
        return walk.each([(name, value[name]) for name in extra], part)

    return {dict: check}


def _property_names(node: Node, rule: Any) -> Rules:
    part = node.part(rule)

    def check(value: dict[str, Any], walk: Walk) -> bool:
        fit = True
        for name in value:
            fit = part.test(name, walk) and fit
        return fit

    return {dict: check}


def _dependent_schemas(node: Node, rule: dict[str, Any]) -> Rules:
    parts = {name: node.part(schema) for name, schema in rule.items()}

    def check(value: dict[str, Any], walk: Walk) -> bool:
        walk.spend(len(parts))
        fit = True
        for name, part in parts.items():
            if name in value:
                fit = part.test(value, walk) and fit
        return fit

    return {dict: check}


def _items(node: Node, rule: Any) -> Rules:
    part = node.part(rule)
    start = len(node.schema.get("prefixItems", ()))

    def check(value: list[Any], walk: Walk) -> bool:
        if len(value) <= start:
            return True
        if rule is False:
            return walk.fails("items", rule, node.schema, value)
        rest = value[start:] if start else value
        if part.takes_unseen(rest):
            walk.spend(len(rest))
            return True
        return walk.each(enumerate(rest, start), part)

    return {list: check}


def _prefix_items(node: Node, rule: list[Any]) -> Rules:
    parts = [node.part(schema) for schema in rule]

    def check(value: list[Any], walk: Walk) -> bool:
        fit = True
        for index, (item, part) in enumerate(zip(value, parts, strict=False)):
            fit = walk.each(((index, item),), part) and fit
        return fit

    return {list: check}


def _contains(node: Node, rule: Any) -> Rules:
    part = node.part(rule)
    least = node.schema.get("minContains", 1)
    most = node.schema.get("maxContains")

    def check(value: list[Any], walk: Walk) -> bool:
        count = 0
        for item in value:
            count += walk.fits(part, item)
            if most is not None and count > most:
                return walk.fails("maxContains", most, node.schema, value)
        if count >= least:
            return True
        keyword = "minContains" if count else "contains"
        return walk.fails(keyword, least if count else rule, node.schema, value)

    return {list: check}


def _all_of(node: Node, rule: list[Any]) -> Rules:
    parts = [node.part(schema) for schema in rule]

    def check(value: Any, walk: Walk) -> bool:
        fit = True
        for part in parts:
            fit = part.test(value, walk) and fit
            if not fit and walk.found is None:
                return False
        return fit

    return _for_all(check)


def _any_of(node: Node, rule: list[Any]) -> Rules:
    parts = [node.part(schema) for schema in rule]
    return _for_all(failing(node, "anyOf", rule, lambda value, walk: any(walk.fits(part, value) for part in parts)))


def _one_of(node: Node, rule: list[Any]) -> Rules:
    parts = [node.part(schema) for schema in rule]
    return _for_all(
        failing(node, "oneOf", rule, lambda value, walk: sum(walk.fits(part, value) for part in parts) == 1)
    )


def _not(node: Node, rule: Any) -> Rules:
    part = node.part(rule)
    return _for_all(failing(node, "not", rule, lambda value, walk: not walk.fits(part, value)))


def _if(node: Node, rule: Any) -> Rules:
    asked, schema = node.part(rule), node.schema
    then = node.part(schema["then"]) if "then" in schema else None
    otherwise = node.part(schema["else"]) if "else" in schema else None

    def check(value: Any, walk: Walk) -> bool:
        chosen = then if walk.fits(asked, value) else otherwise
        return chosen is None or chosen.test(value, walk)

    return _for_all(check)


def _ref(node: Node, rule: str) -> Rules:
    kept: list[Node] = []

    def check(value: Any, walk: Walk) -> bool:
        if kept:
            return kept[0].test(value, walk)
        walk.spend(LOOKUP_STEPS)
        found = node.referred(rule)
        if node.is_plain:
            kept.append(found)
        return found.test(value, walk)

    return _for_all(check)


def _unevaluated_items(node: Node, rule: Any) -> Rules:
    def holds(value: list[Any], walk: Walk) -> bool:
        seen = evaluated_items(node, value, walk)
        return all(index in seen for index in range(len(value)))

    return {list: failing(node, "unevaluatedItems", rule, holds)}


def _unevaluated_properties(node: Node, rule: Any) -> Rules:
    def holds(value: dict[str, Any], walk: Walk) -> bool:
        return evaluated_names(node, value, walk) >= value.keys()

    return {dict: failing(node, "unevaluatedProperties", rule, holds)}


KEYWORDS: dict[str, Callable[[Node, Any], Rules]] = VALUE_KEYWORDS | {
    "$ref": _ref,
    "$dynamicRef": _ref,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "propertyNames": _property_names,
    "dependentSchemas": _dependent_schemas,
    "items": _items,
    "prefixItems": _prefix_items,
    "contains": _contains,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "unevaluatedItems": _unevaluated_items,
    "unevaluatedProperties": _unevaluated_properties,
}
