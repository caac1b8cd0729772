"""What --help says about JSON is what --json prints: scripts rely on the members that are named there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec
from tests.support.store.sick import worker

STREAM = Path(__file__).parents[3] / "ops" / "demo" / "transcripts" / "invoice.openai-responses.sse"
NEEDS: dict[str, Callable[[str], list[str]]] = {
    "calls": lambda _key: [],
    "call": lambda key: [key],
    "wait": lambda key: [key],
    "stats": lambda _key: [],
    "workers": lambda _key: [],
    "doctor": lambda _key: [],
    "limit": lambda _key: ["tool:pay", "5"],
    "rate": lambda _key: ["tool:pay", "5/s"],
    "pause": lambda _key: ["tool:pay"],
    "resume": lambda _key: ["tool:pay"],
    "retry": lambda key: [key, "--reason", "r", "--yes"],
    "cancel": lambda key: [key],
    "purge": lambda key: [key],
    "approve": lambda key: [key, "--yes"],
    "replay": lambda key: [key],
    "resolve": lambda key: [key, "--failed", "no", "--reason", "r"],
    "tail": lambda _key: ["--last", "1", "--for", "0s"],
    "decode": lambda _key: [str(STREAM)],
}
WORD = re.compile(r"[a-z_]+|[{}\[\]]")


def documented(command: str, toolonce: CommandLine) -> Any:
    """The first shape in the help of --json: a set of members, each a name or (name, the members of its rows)."""
    text = " ".join(toolonce(command, "--help", place=()).out.split())
    tokens = iter(WORD.findall(text.partition("JSON instead of a table")[2]))
    for token in tokens:
        if token == "{":
            return _members(tokens)
    raise AssertionError(f"{command} --help tells no shape")


def _members(tokens: Any) -> dict[str, Any]:
    members: dict[str, Any] = {}
    last = ""
    for token in tokens:
        match token:
            case "{":
                members[last] = _members(tokens)
            case "}":
                return members
            case "[" | "]":
                pass
            case name:
                members[last := name] = None
    raise AssertionError("a brace is missing")


def lacking(shape: dict[str, Any], shown: Any) -> list[str]:
    """Members that are documented and not there."""
    found = [name for name in shape if name not in shown]
    for name, rows in shape.items():
        if rows and isinstance(shown.get(name), list):
            assert shown[name], f"no rows in {name} to compare"
            found += [f"{name}.{each}" for row in shown[name] for each in lacking(rows, row)]
    return found


@pytest.mark.parametrize("command", NEEDS)
def test_json_holds_the_members_that_help_names(scene: LiveScene, toolonce: CommandLine, command: str) -> None:
    scene.publish(spec("pay"))
    worker(scene, "w")
    key = scene.unknown("a").call
    if command in ("cancel", "approve"):
        key = scene.submit("b", of=spec(approval="always"), held="approval")
    if command == "purge":
        key = scene.succeeded("c")
    place = () if command == "decode" else None
    shape = documented(command, toolonce)

    said = toolonce(command, *NEEDS[command](key), "--json", place=place)

    assert shape
    assert lacking(shape, said.json) == []
