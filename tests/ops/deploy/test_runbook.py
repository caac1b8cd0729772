"""The runbook: its commands exist, and each of its sections has a drill that runs."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest

from toolonce.ops.cli import build_parser

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "ops" / "RUNBOOK.md").read_text()
SECTIONS = {part.splitlines()[0]: part for part in TEXT.split("\n## ")[1:]}
COMMANDS = sorted(
    {line for block in re.findall(r"```\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()}
    | set(re.findall(r"`(toolonce [^`]+)`", TEXT))
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_runbook_can_be_typed(command: str) -> None:
    words = shlex.split(command)

    args = build_parser().parse_args(words[1:])

    assert callable(args.run)


@pytest.mark.parametrize("title", SECTIONS)
def test_every_section_names_a_drill_that_exists(title: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", SECTIONS[title].partition("Drill:")[2])

    assert named
    for path, test in named:
        tree = ast.parse((ROOT / path).read_text())
        assert not test or test in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
