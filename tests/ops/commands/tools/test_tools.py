"""Looking at tools: a registry before it is used, and what workers have published."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec
from toolonce.stream import DIALECTS, Dialect
from toolonce.stream.dialects.tools import offered

SAFE = """
from toolonce.worker.tools.registry import Registry
tools = Registry()

@tools.tool(effect="read")
def look(city: str) -> str:
    return city
"""
RISKY = (
    SAFE
    + """
@tools.tool(timeout=None)
def pay(cents: int) -> None: ...
"""
)


@pytest.mark.parametrize(("name", "text", "code"), [("safe_app", SAFE, 0), ("risky_app", RISKY, 1)])
def test_a_risky_registry_is_told_by_the_exit_code(
    toolonce: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, code: int
) -> None:
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))

    said = toolonce("tools", "check", f"{name}:tools", place=[])
    as_json = toolonce("tools", "check", "--tools", f"{name}:tools", "--json", place=[])

    assert said.code == as_json.code == code
    assert ("pay" in said.out) == (code == 1)
    assert as_json.json


def test_the_revised_registry_is_written_with_its_flags(
    toolonce: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "written_app.py").write_text(RISKY)
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "tools.json"

    said = toolonce("tools", "check", "written_app:tools", "--write", str(file), place=[])

    written = {tool["name"]: tool["parallel_safe"] for tool in json.loads(file.read_text())["tools"]}
    assert written == {"look": True, "pay": False}
    assert "look" in said.out, "the table is shown as well"


@pytest.mark.parametrize(
    "given", [(), ("app:tools", "--tools", "app:tools"), ("checked_app:tools", "--write", "no/folder/tools.json"),
              ("checked_app:tools", "--fanout", "0")],
)  # fmt: skip
def test_a_check_that_makes_no_sense_is_refused_in_one_line(
    toolonce: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...]
) -> None:
    (tmp_path / "checked_app.py").write_text(SAFE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)

    said = toolonce("tools", "check", *given, place=[])

    assert said.code == 2
    assert said.err.count("\n") == 1


def test_published_tools_are_listed_with_their_newest_spec(scene: LiveScene, toolonce: CommandLine) -> None:
    scene.publish(spec("pay", version="1"), spec("look", "read"))
    scene.publish(spec("pay", version="2"))

    listed = toolonce("tools", "list", "--json").json["tools"]

    assert {name: tool["version"] for name, tool in listed.items()} == {"look": "1", "pay": "2"}
    assert "look" in toolonce("tools", "list").out


@pytest.mark.parametrize("dialect", DIALECTS)
def test_published_tools_are_listed_as_a_request_of_each_dialect_has_them(
    scene: LiveScene, toolonce: CommandLine, dialect: Dialect
) -> None:
    scene.publish(spec("pay"), spec("look", "read"))
    made = offered([spec("pay"), spec("look", "read")], dialect)

    said = toolonce("tools", "list", "--for", dialect, "--json")

    assert said.code == 0
    assert said.json.keys() == {"tools", "options", "notes"}
    assert (said.json["tools"], said.json["options"]) == (made, made.options)
    assert [note["text"] for note in said.json["notes"]] == [note.text for note in made.notes]


def test_what_a_provider_does_with_each_tool_is_shown_and_a_refused_one_is_left_out(
    scene: LiveScene, toolonce: CommandLine
) -> None:
    scene.publish(spec("a.pay"), spec("look", "read"))

    said = toolonce("tools", "list", "--for", "anthropic")
    as_json = toolonce("tools", "list", "--for", "anthropic", "--json")
    other = toolonce("tools", "list", "--for", "google-generate")

    assert said.code == as_json.code == 0
    assert "refused" in said.out
    assert "nothing to say" in said.out
    assert [tool["name"] for tool in as_json.json["tools"]] == ["look"]
    assert [note["tool"] for note in as_json.json["notes"] if note["refused"]] == ["a.pay"]
    assert (other.code, "ordered=True" in " ".join(other.out.split())) == (0, True)


def test_the_option_that_forbids_parallel_calls_is_shown(scene: LiveScene, toolonce: CommandLine) -> None:
    scene.publish(spec("pay"))

    assert '"parallel_tool_calls": false' in toolonce("tools", "list", "--for", "openai-chat").err


def test_a_dialect_that_there_is_not_is_refused_with_those_that_there_are(toolonce: CommandLine) -> None:
    said = toolonce("tools", "list", "--for", "openai")

    assert said.code == 2
    assert "openai-responses" in said.err
