"""The names of keys in Redis stand in one module, `store/model/keys.py`; nobody else puts one together."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path for package in ("store", "stream", "worker", "ops") for path in (ROOT / package).rglob("*.py"))
KEY_TEXT = re.compile(r"\A\{[\w%{}.]*\}:|(?:\A|[\s'])rq:[a-z]")
"""A text that begins like a key: ``{toolonce}:x``, ``{%s}:x``, ``rq:x``."""
ROOTS = {"root", "rq_prefix"}


def test_keys_are_named_in_the_module_of_keys_only() -> None:
    places = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in MODULES
        if path != ROOT / "store" / "model" / "keys.py"
        for line in raw_keys(path.read_text())
    ]

    assert places == []


@pytest.mark.parametrize(
    "line",
    [
        'f"{space.root}leases"', "f'{root}{name}'", 'f"{self.rq_prefix}:job"', 'f"{{{name}}}:call:1"', '"{n}:events"',
        'space.root + "leases"', '"%sleases" % space.root', '"{%s}:leases" % name', '"{toolonce}:leases"',
        '"rq:workers"', 'f"rq:job:{job}"', '"{}leases".format(space.root)', '"".join((root, "leases"))',
    ],
)  # fmt: skip
def test_a_raw_name_of_a_key_is_found(line: str) -> None:
    assert set(raw_keys(f"key = {line}")) == {1}


@pytest.mark.parametrize(
    "line", ["Invocation(script, space.root, args)", '"see {toolonce}"', '"RQ: none"', "a.root.b + 1"]
)
def test_what_only_resembles_the_name_of_a_key_is_left_alone(line: str) -> None:
    assert set(raw_keys(f"key = {line}")) == set()


def raw_keys(text: str) -> Iterator[int]:
    """The lines on which a key is put together. Docstrings may show keys."""
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and _is_text(node.value)}
    for node in ast.walk(tree):
        if id(node) not in docstrings and (_is_key(node) or _joins_a_root(node)):
            yield getattr(node, "lineno", 0)


def _is_key(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return bool(KEY_TEXT.search(text))
        case ast.JoinedStr(values=[ast.Constant(value="{"), ast.FormattedValue(), ast.Constant(value=str(rest)), *_]):
            return rest.startswith("}:")
    return False


def _joins_a_root(node: ast.AST) -> bool:
    """Whether a text is made with the root of a namespace: by ``+``, ``%``, an f-string, ``format`` or ``join``."""
    match node:
        case ast.BinOp(left=left, right=right):
            return any(map(_is_root, (left, right, *getattr(right, "elts", ()))))
        case ast.FormattedValue(value=value):
            return _is_root(value)
        case ast.Call(func=ast.Attribute(attr="format"), args=args):
            return any(map(_is_root, args))
        case ast.Call(func=ast.Attribute(attr="join"), args=[ast.Tuple(elts=parts) | ast.List(elts=parts)]):
            return any(map(_is_root, parts))
    return False


def _is_root(node: ast.AST) -> bool:
    return getattr(node, "attr", getattr(node, "id", "")) in ROOTS


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
