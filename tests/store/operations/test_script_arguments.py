"""What stands in ARGV is declared once: Python, the script's header and its body agree."""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

import pytest

from toolonce.store import connections, operations
from toolonce.store.model.keys import Namespace
from toolonce.store.operations.operation import invocation, load, names
from toolonce.store.operations.recovery import adopt
from toolonce.store.operations.script_arguments import (
    DECLARED,
    Counted,
    Declaration,
    Each,
    Flag,
    arguments_of,
    flag,
    repeated,
)  # fmt: skip

for package in (operations, connections):
    for found in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{found.name}")
SCRIPTS = {declared.script: declared for declared in DECLARED.values() if declared.script}
_HEADER = re.compile(r"^-- KEYS(\[1\] = [^\n]*)\n-- ARGV    = (.*?)\n-- RETURNS ", re.DOTALL | re.MULTILINE)
_WORDS = re.compile(r"\s*\([^()]*\)")
_INDEX = re.compile(r"\bARGV\[(\d+)\]")


def header_of(name: str) -> tuple[str, ...]:
    """What the header says of KEYS and of ARGV, without the explanations in brackets."""
    said = re.search(
        r"^-- KEYS(\[1\] = [^\n]*)\n-- ARGV    = (.*?)\n-- RETURNS ", load(name).text, re.DOTALL | re.MULTILINE
    )
    assert said, f"{name} has no such header"
    words = re.sub(r"\n--\s+", " ", said[2])
    while _WORDS.search(words):
        words = _WORDS.sub("", words)
    return said[1], words


def test_the_arguments_of_every_script_are_declared() -> None:
    assert set(SCRIPTS) == set(names())


@pytest.mark.parametrize("name", names())
def test_the_header_of_a_script_lists_its_arguments_as_they_are_declared(name: str) -> None:
    assert header_of(name) == ("[1] = root of the namespace", SCRIPTS[name].header or "none")


@pytest.mark.parametrize("name", names())
def test_a_script_reads_each_argument_that_is_declared_and_no_other(name: str) -> None:
    """Those that have a fixed place: all before the first list, whose number may be the next one."""
    adders = SCRIPTS[name].adders
    fixed = next((place for place, adder in enumerate(adders) if adder), len(adders))
    read = {int(index) for index in _INDEX.findall(load(name).text)}

    assert read - ({fixed + 1} if fixed < len(adders) else set()) == set(range(1, fixed + 1))


def test_lists_are_sent_with_their_number_and_what_is_repeated_without() -> None:
    served = [("pay", "2", ["1", "*"]), ("look", "1", [])]
    asked = adopt(Namespace("n"), served, queues=["q"], keys=["k1", "k2"], most=5)

    assert asked.args == (5, 1, "q", 2, "k1", "k2", "pay", "2", 2, "1", "*", "look", "1", 0)


def test_a_truth_value_is_sent_as_a_number() -> None:
    assert [(value, type(value)) for value in (flag(True), flag(False))] == [(1, int), (0, int)]


class WithBool(NamedTuple):
    call: str
    counts: bool


class WithNone(NamedTuple):
    call: str | None


class NotLast(NamedTuple):
    calls: Each[str]
    most: int


class Undeclared(NamedTuple):
    call: str


class OfUndeclared(NamedTuple):
    calls: Each[Undeclared]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (WithBool, "WithBool.counts: .*bool.* is not an argument"),
        (WithNone, "WithNone.call: .* is not an argument"),
        (NotLast, "NotLast: what has no count stands last"),
        (OfUndeclared, "OfUndeclared.calls: .* is not an argument"),
    ],
)
def test_what_can_be_no_argument_is_refused_at_import(
    monkeypatch: pytest.MonkeyPatch, fields: type[tuple[object, ...]], why: str
) -> None:
    forget_declarations_after(monkeypatch)

    with pytest.raises(TypeError, match=why):
        arguments_of("new")(fields)


def test_a_second_declaration_of_a_script_is_refused() -> None:
    with pytest.raises(TypeError, match="arguments of claim are declared already"):
        arguments_of("claim")(Undeclared)


def test_arguments_that_nobody_declared_are_not_sent() -> None:
    with pytest.raises(KeyError):
        invocation("{n}:", Undeclared(call="c"), int)


class Place(NamedTuple):
    queue: str
    is_full: Flag


class Everything(NamedTuple):
    most: int
    names: Counted[str]
    places: Each[Place]


def test_a_declaration_knows_the_header_and_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_declarations_after(monkeypatch)
    repeated(Place)
    arguments_of("new")(Everything)
    arguments = Everything(most=1, names=("a",), places=[Place(queue="q", is_full=flag(True))])

    assert DECLARED[Everything].header == "most, #names, names[], places[queue, is_full]"
    assert DECLARED[Everything].flat(arguments) == (1, 1, "a", "q", 1)


def forget_declarations_after(monkeypatch: pytest.MonkeyPatch) -> None:
    for fields in (WithBool, WithNone, NotLast, OfUndeclared, Place, Everything):
        monkeypatch.setitem(DECLARED, fields, Declaration("", "", (), is_flat=True))
        monkeypatch.delitem(DECLARED, fields)
