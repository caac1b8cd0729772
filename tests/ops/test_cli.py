"""The command line as a whole: help, errors in one line, exit codes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.processes.processes import Child
from tests.support.servers.redis_server import RealServer
from toolonce.ops.cli import build_parser


def command_names() -> list[str]:
    parser = build_parser()
    (subparsers,) = [action for action in parser._actions if hasattr(action, "choices") and action.choices]
    return sorted(subparsers.choices or ())


@pytest.mark.parametrize("name", command_names())
def test_every_command_explains_itself_with_examples(toolonce: CommandLine, name: str) -> None:
    said = toolonce(name, "--help", place=[])

    assert said.code == 0
    examples = said.out.partition("examples:\n")[2].strip().splitlines()
    assert examples
    assert any(re.search(rf"\btoolonce {name}\b", line) for line in examples)


def test_no_module_of_a_command_hides_one_of_the_standard_library() -> None:
    import sys

    folder = Path(__file__).parent.parent.parent / "ops"
    assert not {path.stem for path in folder.glob("*.py")} & set(sys.stdlib_module_names)


@pytest.mark.parametrize(
    ("words", "place", "code"),
    [
        (["calls"], ["--redis", "redis://127.0.0.1:1/0"], 3),
        (["calls"], ["--redis", "unix:///nowhere/at/all"], 3),
        (["calls"], ["--redis", "http://localhost"], 2),
        (["calls"], ["--redis", "redis://localhost?no_such_option=1"], 2),
        (["calls"], ["--namespace", "two words"], 2),
        (["calls", "--state", "lost"], [], 2),
        (["calls", "--since", "yesterday"], [], 2),
        (["calls", "--cursor", "x"], [], 2),
        (["nothing"], [], 2),
        ([], [], 2),
        (["submit", "--scope", "s", "--calls", "-"], [], 2),
        (["work", "--tools", "no.such.module:tools"], [], 2),
        (["work", "--tools", "nonsense"], [], 2),
    ],
)
def test_what_cannot_be_done_is_one_line_with_its_exit_code(
    toolonce: CommandLine, redis_server: RealServer, words: list[str], place: list[str], code: int
) -> None:
    at = [] if not words or words == ["nothing"] else ["--redis", redis_server.url, *place]
    said = toolonce(*words, place=at)

    assert said.code == code
    assert said.out == ""
    assert said.err.startswith("toolonce: ")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    "words", ["decode", "demo", "submit --scope s", "submit --scope s --turn-id t --calls", "replay --scope s --turn"]
)
def test_a_file_that_cannot_be_read_is_a_mistake_of_usage_and_said_before_any_server_is_asked(
    toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str
) -> None:
    monkeypatch.setenv("TOOLONCE_REDIS_URL", "redis://127.0.0.1:1/0")
    for file, why in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a directory")):
        said = toolonce(*words.split(), str(file), place=[])

        assert said.code == 2
        assert said.err == f"toolonce: {file}: {why}\n"


@pytest.mark.parametrize("option", ["--dry-run", "--yes"])
def test_a_replay_changes_nothing_so_it_asks_for_no_word(toolonce: CommandLine, option: str) -> None:
    assert option not in toolonce("replay", "--help", place=[]).out
    assert toolonce("replay", "--since", "1h", option).code == 2


@pytest.mark.parametrize(
    "options", [{"appendonly": "no"}, {"appendfsync": "everysec"}, {"maxmemory_policy": "allkeys-lru"}]
)
def test_a_server_that_may_forget_is_refused_unless_the_operator_says_so(
    toolonce: CommandLine, options: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = tmp_path / "calls.json"
    calls.write_text("[]")
    words = ["submit", "--scope", "s", "--turn-id", "t", "--calls", str(calls)]
    with RealServer(**options) as server:
        refused = toolonce(*words, place=["--redis", server.url])
        waived = toolonce(*words, place=["--redis", server.url, "--durability", "volatile"])
        monkeypatch.setenv("TOOLONCE_DURABILITY", "declared")
        declared = toolonce(*words, place=["--redis", server.url])

    assert refused.code == 4
    assert "CONFIG SET" in refused.err
    assert (waived.code, declared.code) == (0, 0)
    assert "warning" in waived.err


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "unix:///nowhere/at/all"])
def test_where_nobody_listens_the_ways_out_are_named(toolonce: CommandLine, url: str) -> None:
    said = toolonce("stats", place=["--redis", url])

    assert all(way in said.err for way in ("start a server", "--redis URL", "TOOLONCE_REDIS_URL"))


def test_sentinels_that_name_no_primary_are_said_without_their_inner_life(toolonce: CommandLine) -> None:
    said = toolonce("stats", place=["--redis", "redis+sentinel://127.0.0.1:1/billing/0"])

    assert said.err == "toolonce: no answer from Redis: No master found for 'billing'\n"


def test_a_command_that_the_server_refuses_is_one_line(toolonce: CommandLine) -> None:
    with RealServer() as server, server.client() as client:
        client.set("{toolonce}:counts", "not ours")

        said = toolonce("stats", place=["--redis", server.url])

    assert said.code == 3
    assert said.err.startswith("toolonce: Redis refuses: WRONGTYPE")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("words", [["decode"], ["submit", "--scope", "s", "--redis", "unix:///nowhere"]])
def test_a_turn_that_ended_badly_is_told_once(words: list[str]) -> None:
    cut = Path(__file__).parents[2] / "ops" / "demo" / "transcripts" / "cut.anthropic.sse"
    with Child.python("-m", "toolonce.ops", *words, str(cut)) as child:
        assert child.wait() == 1

    assert child.output.count("without a stop reason") == 1


def test_flags_win_over_the_environment(
    toolonce: CommandLine, redis_server: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLONCE_REDIS_URL", "redis://127.0.0.1:1/0")
    assert toolonce("stats", place=[]).code == 3
    assert toolonce("stats", place=["--redis", redis_server.url]).code == 0
    monkeypatch.setenv("TOOLONCE_REDIS_URL", redis_server.url)
    monkeypatch.setenv("TOOLONCE_NAMESPACE", "bad namespace")
    assert toolonce("stats", place=[]).code == 2


def test_a_reader_that_goes_away_is_no_error(redis_server: RealServer, namespace: str) -> None:
    line = "python -m toolonce.ops --help | head -1; echo ${PIPESTATUS[0]}"
    del redis_server, namespace
    with Child("bash", "-c", line.replace("python", __import__("sys").executable)) as child:
        child.wait()

    assert child.lines[-1] == "0"
    assert "Traceback" not in child.output


@pytest.mark.parametrize(
    "words",
    [
        ["work", "--tools", "a:b", "--queue", ""],
        ["submit", "--scope", "", "--turn-id", "t", "--calls", "-"],
        ["wait", "turn", "--scope", " "],
    ],
)
def test_an_unset_variable_of_a_script_chooses_nothing(toolonce: CommandLine, words: list[str]) -> None:
    said = toolonce(*words)

    assert (said.code, "the value is empty" in said.err) == (2, True)
