"""Commands whose standard streams are closed, full, or of a locale that cannot show every letter."""

from __future__ import annotations

import shlex
import sys

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.processes.processes import Child
from tests.support.servers.redis_server import RealServer
from tests.support.store.live_store import LiveScene
from toolonce.ops.views import render


def said(words: str, redirection: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    line = f"{shlex.quote(sys.executable)} -m toolonce.ops {words} {redirection}"
    with Child("bash", "-c", line, env=env) as child:
        return child.wait(), child.output


@pytest.mark.parametrize(
    ("words", "redirection", "code"),
    [
        ("decode --dialect anthropic", "<&-", 1),  # as for an empty stream: it is truncated
        ("stats", ">&-", 0),
        ("calls --json", ">&-", 0),
        ("stats", ">&- 2>&- <&-", 0),
    ],
)
def test_a_closed_stream_is_an_empty_one(redis_server: RealServer, words: str, redirection: str, code: int) -> None:
    place = "" if words.startswith("decode") else f"--redis {redis_server.url}"
    ended, output = said(f"{words} {place}", redirection)
    assert (ended, "Traceback" in output) == (code, False)


@pytest.mark.parametrize("words", ["stats", "calls --json"])
def test_output_that_cannot_be_written_is_one_line(redis_server: RealServer, words: str) -> None:
    ended, output = said(f"{words} --redis {redis_server.url}", "> /dev/full")
    assert (ended, output.splitlines()[-1]) == (1, "toolonce: the output cannot be written: No space left on device")


def test_letters_that_the_locale_cannot_show_are_escaped(scene: LiveScene, redis_server: RealServer) -> None:
    key = scene.succeeded("a", "☀")
    place = f"--redis {redis_server.url} --namespace {scene.space.name}"

    ended, output = said(f"call {key} {place}", "", {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"})

    assert ended == 0
    assert "\\u2600" in output


def test_a_name_of_several_lines_stays_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    render.show_table(("call", "tool"), [("1", "a\n2   pay   succeeded"), ("3", "x" * 10_000)])
    lines = capsys.readouterr().out.splitlines()
    assert not [line for line in lines if line.startswith("2")]
    assert len(lines) < 10


def test_text_that_is_no_utf_8_is_refused_in_one_line(toolonce: CommandLine, scene: LiveScene) -> None:
    run = scene.unknown("a")
    refused = toolonce("resolve", run.call, "--failed", "no", "--reason", "\udcff")
    assert refused.code == 2
    assert refused.err == "toolonce: '\\udcff' is not valid UTF-8 and cannot be stored\n"
    assert scene.record(run.call).state == "unknown"
