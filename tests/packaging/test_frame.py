"""What a fresh checkout rests on: exact pins for all that is declared, and targets that say what they do."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LINES = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
PINS = {canonicalize_name(name): Version(version) for name, version in (line.split("==") for line in LINES)}
DECLARED = [
    Requirement(text)
    for group in (
        PROJECT["build-system"]["requires"],
        PROJECT["project"]["dependencies"],
        *PROJECT["dependency-groups"].values(),
    )
    for text in group
]
NOT_EXACT = re.compile(r"[^\w.=+-]")


@pytest.mark.parametrize("requirement", DECLARED, ids=lambda requirement: requirement.name)
def test_everything_declared_is_pinned_within_what_is_declared(requirement: Requirement) -> None:
    assert PINS[canonicalize_name(requirement.name)] in requirement.specifier


def test_pins_are_exact_and_name_no_place() -> None:
    assert [line for line in LINES if NOT_EXACT.search(line)] == []


def test_pip_itself_is_pinned() -> None:
    assert PINS[canonicalize_name("pip")] >= Version("25.3")  # the first with --build-constraint


def test_make_alone_lists_every_target() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    listed = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert phony
    assert set(re.findall(r"^  make (\w+) +\S", listed, re.MULTILINE)) == set(phony[1].split())


def test_what_lands_is_checked_and_tested() -> None:
    steps = re.findall(r"make .*?(\w+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)

    assert steps == ["check", "test"]
