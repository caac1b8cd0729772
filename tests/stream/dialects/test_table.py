"""A dialect is one folder and one row: nothing else lists dialects by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolonce.stream.dialects.table import TABLE
from toolonce.stream.turns.turn import DIALECTS

ROOT = Path(__file__).resolve().parents[3]
SHARED = {"stream/dialects/table.py", "store/model/dialects.py"}  # the rows, and the type


def literals(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialects_name_stands_in_its_folder_in_the_table_and_in_the_type_only(dialect: str) -> None:
    own = f"stream/dialects/{dialect.replace('-', '_')}/reader.py"
    paths = [path for package in ("store", "stream", "worker", "ops") for path in (ROOT / package).rglob("*.py")]

    naming = {path.relative_to(ROOT).as_posix() for path in paths if dialect in literals(path)}

    assert naming == {own, *SHARED}


def test_every_dialect_of_the_type_has_its_row_and_its_own_reader() -> None:
    assert TABLE.keys() == set(DIALECTS)
    assert {row.reader.dialect: row.name for row in TABLE.values()} == {name: name for name in DIALECTS}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_rows_replies_are_those_of_its_folder(dialect: str) -> None:
    replies = TABLE[dialect].replies  # type: ignore[index]

    assert [name for name in ("IDS", "echo", "write", "results") if not hasattr(replies, name)] == []
    assert replies.__name__ == f"toolonce.stream.dialects.{dialect.replace('-', '_')}.replies"  # type: ignore[attr-defined]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_rows_tool_definitions_are_made_in_its_folder(dialect: str) -> None:
    definitions = TABLE[dialect].definitions  # type: ignore[index]

    assert [name for name in ("RULES", "entries") if not hasattr(definitions, name)] == []
    assert definitions.__name__ == f"toolonce.stream.dialects.{dialect.replace('-', '_')}.definitions"  # type: ignore[attr-defined]
