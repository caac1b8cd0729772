"""Text of models and providers in logs, tables and JSON: shown whole, and never able to forge a line."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.store.live_store import LiveScene
from toolonce.ops.views import render
from toolonce.ops.views.logs import ConsoleLines, JsonLines
from toolonce.store.model.plain import visible
from toolonce.stream import TurnDecoder

EVIL = "\x1b]0;pwned\x07\x1b[2J\n20:00:00 info    all is well\u202e\x9b31m\u2028\x7f\u2066\udcff"
ACTING = "\x1b\x07\x9b\u202e\u2028\x7f\u2066\udcff"
SEEN = r"\x1b]0;pwned\x07\x1b[2J\n20:00:00 info    all is well\u202e\x9b31m\u2028\x7f\u2066\udcff"


def record(message: str, *, error: BaseException | None = None) -> logging.LogRecord:
    try:
        raise error or ValueError(message)
    except ValueError:
        exc_info = sys.exc_info() if error else None
    made = logging.LogRecord("toolonce.x", logging.WARNING, __file__, 1, message, (), exc_info)
    made.__dict__["turn"] = EVIL
    return made


def is_harmless(text: str) -> bool:
    return not any(mark in text for mark in ACTING) and "\n20:00:00" not in text


def test_a_log_line_of_foreign_text_stays_one_line_and_shows_what_it_holds() -> None:
    """faults 25"""
    line = ConsoleLines().format(record(f"turn failed: {EVIL}"))

    assert is_harmless(line)
    assert f"turn failed: {SEEN}" in line
    assert "\n" not in line


def test_a_traceback_in_a_log_cannot_pass_for_lines_of_the_log() -> None:
    """faults 25"""
    text = ConsoleLines().format(record("it broke", error=ValueError(EVIL)))

    assert is_harmless(text)
    assert all(line.startswith("    ") for line in text.split("\n")[1:])
    assert r"\x1b]0;pwned" in text


def test_a_json_log_line_escapes_what_a_terminal_obeys_and_keeps_its_value() -> None:
    """faults 25"""
    line = JsonLines().format(record(EVIL, error=ValueError(EVIL)))

    assert is_harmless(line)
    assert "\n" not in line
    assert json.loads(line)["message"] == EVIL
    assert json.loads(line)["turn"] == EVIL


@pytest.mark.parametrize(
    "shown",
    [
        lambda: render.show_json({EVIL: [EVIL]}),
        lambda: render.show_table(("name",), [(EVIL,)]),
        lambda: render.show_pairs({"name": EVIL}),
        lambda: render.show(EVIL),
        lambda: render.say(EVIL),
        lambda: render.console().print(render.plain(EVIL)),
        lambda: render.console().print(render.state(EVIL)),
    ],
)
def test_no_output_lets_foreign_text_act_on_the_terminal(
    shown: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """faults 25"""
    shown()

    said = "".join(capsys.readouterr())
    assert is_harmless(said)
    assert r"\u202e" in said
    assert "pwned" in said


def test_text_of_any_script_is_shown_as_it_is() -> None:
    words = "Zürich 東京 שלום नमस्ते क\u200dष 👩\u200d🚀\u3000\u00a0"

    assert visible(words) == words
    assert json.loads(render.json_text(words)) == words
    assert words in render.json_text(words)


@pytest.mark.parametrize("words", [("call", EVIL.replace("\udcff", "")), (EVIL.replace("\udcff", ""),)])
def test_an_error_line_cannot_be_forged(scene: LiveScene, toolonce: CommandLine, words: tuple[str, ...]) -> None:
    """faults 25: what was typed, or pasted, is repeated in the error."""
    said = toolonce(*words)

    assert said.code != 0
    assert is_harmless(said.err)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_what_a_model_called_its_tool_acts_on_no_terminal(
    scene: LiveScene, toolonce: CommandLine, form: tuple[str, ...]
) -> None:
    """faults 25"""
    name = EVIL.replace("\udcff", "")
    key = scene.submit("a", arguments={name: name}, turn_id=name)

    for words in (("calls",), ("call", key), ("tail", "--last", "9", "--for", "0s")):
        said = toolonce(*words, *form)
        assert said.code == 0
        assert is_harmless(said.out + said.err)


def test_a_program_with_logging_of_its_own_gets_lines_that_cannot_be_forged(caplog: pytest.LogCaptureFixture) -> None:
    """faults 25: the library's lines go through whatever formatter the harness has."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": EVIL}}
    decoder = TurnDecoder("openai-responses")
    response = {"id": EVIL, "status": "failed", "error": {"code": EVIL, "message": EVIL}}
    decoder.feed(
        f"event: response.failed\ndata: {json.dumps({'type': 'response.failed', 'response': response})}\n\n".encode()
    )
    decoder.eof()
    other = TurnDecoder("anthropic")
    other.feed(f"event: error\ndata: {json.dumps(error)}\n\n".encode())
    other.eof()

    assert len(caplog.messages) == 2
    assert all(is_harmless(line) and "\n" not in line for line in caplog.messages)
    assert r"\u202e" in caplog.messages[0]
