"""The scripts against the table of the record's fields: what they name stands in it, and who writes is named there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolonce.store.model.outcomes import Failure
from toolonce.store.model.record import FIELDS, FORGOTTEN_FIELDS
from toolonce.store.model.specs import ToolSpec
from toolonce.store.operations import admission
from toolonce.store.operations.admission import Identified, NewCall, Turn
from toolonce.store.operations.operation import load

LUA = Path(admission.__file__).resolve().parents[1] / "lua"
FILES = {path.stem: path.read_text("utf-8") for path in sorted(LUA.glob("*.lua"))}
READ = re.compile(r"(?<![\w.])(?:run_)?fields\((?!call, \.\.\.)")
OF_RECORD = re.compile(r"redis\.call\('(HSET|HINCRBY|HDEL|HMGET|HGET|HSTRLEN|HSETNX)', record_of\([^()]*\), ")
MOVE = re.compile(r"(?<![\w.])(?:flow\(\)\.)?(?:move|transition)\(")
WRITE_STATE = re.compile(r"(?<!function )\bwrite_state\(")
ADDED = re.compile(r"\bmore\.(\w+)(?=(?:, more\.\w+)* = )")
OF_WHOLE = re.compile(r"(?<!\w)got\.(\w+)")
"""A field of a record that was read whole."""
LITERAL = re.compile(r"'(\w+)'$")
WRITES = {"HSET", "HINCRBY", "HSETNX"}
ELSEWHERE = {
    "_clock": {"not_before", "approval_until", "deadline_at", "queued_at", "approval_from", "clock_back_at"},
    "_claiming": {"attempt", "begun", "claimed_at", "fence", "lease", "marks", "worker"},
    "_placement": {"admitted_by", "admitted_at", "turn_key"},
    "_usual_placement": {"deadline_at", "reply_id"},
    "decide": {"approved", "no_repeat"},
}
"""Names that are written by way of a variable, a list or a choice, and so are not seen by reading the text."""


def arguments(text: str) -> list[str]:
    """The arguments of a call, whose bracket has just been opened where the text starts."""
    depth, quoted, found = 0, False, [""]
    for sign in text:
        quoted ^= sign == "'"
        if not quoted:
            depth += (sign in "({[") - (sign in ")}]")
            if depth < 0:
                break
            if sign == "," and depth == 0:
                found.append("")
                continue
        found[-1] += sign
    return [" ".join(one.split()) for one in found]


def literals(names: list[str]) -> Iterator[str]:
    for name in names:
        if found := LITERAL.fullmatch(name):
            yield found[1]


def written(source: str) -> set[str]:
    names = set(ADDED.findall(source))
    for found in OF_RECORD.finditer(source):
        if found[1] in WRITES:
            names |= set(literals(arguments(source[found.end() :])[::2]))
    for found in WRITE_STATE.finditer(source):
        names |= set(literals(arguments(source[found.end() :])[2::2]))
    for found in MOVE.finditer(source):
        told = arguments(source[found.end() :])
        if len(told) == 5 and told[4].startswith("{"):
            names |= set(literals(arguments(told[4][1:])[::2]))
    return names


def named(source: str) -> set[str]:
    """All fields that are read, deleted or written."""
    names = written(source) | (set(OF_WHOLE.findall(source)) if "whole_record(" in source else set())
    for found in READ.finditer(source):
        names |= set(literals(arguments(source[found.end() :])[1:]))
    for found in OF_RECORD.finditer(source):
        if found[1] not in WRITES:
            names |= set(literals(arguments(source[found.end() :])))
    return names


@pytest.mark.parametrize("name", FILES)
def test_each_field_that_a_script_names_stands_in_the_table(name: str) -> None:
    assert named(FILES[name]) - FIELDS.keys() == set()


def test_the_table_names_the_writers_of_each_field_and_no_others() -> None:
    writers: dict[str, set[str]] = {name: set() for name in FIELDS}
    for file, source in FILES.items():
        for name in written(source) | ELSEWHERE.get(file, set()):
            writers[name].add(file)
    for name in stored_by_admission():
        writers[name].add("admission")
    assert {name: set(field.writers) for name, field in FIELDS.items()} == writers


def stored_by_admission() -> set[str]:
    spec = ToolSpec("pay", begins=True, hold_duplicates=True, unique_by=("order",), unique_for_ms=1)
    identity = Identified("k", ("f",), by_intent=True)
    refusal = Failure("no", "no")
    call = NewCall(
        identity,
        "pay",
        "{}",
        0,
        "c",
        spec,
        "custom",
        refusal=refusal,
        lanes=("a",),
        echo={"x": 1},
        trace="t",
        key_id="k",
        secret=True,
    )  # fmt: skip  (with all that is optional)
    return set(admission._record(Turn("s", "t", "k"), call))


def test_forget_takes_what_the_table_says_and_nothing_else() -> None:
    source = load("purge").text
    deleted = re.search(r"'HDEL', record_of\(call\), ", source)
    assert deleted
    assert tuple(literals(arguments(source[deleted.end() :]))) == FORGOTTEN_FIELDS
