"""Each attempt that an exception ended leaves its type, text and place in the history, and its traceback in the log."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer
from toolonce.store.model.keyring import VARIABLE
from toolonce.store.model.states import State
from toolonce.worker import NotStarted, Registry, ToolError


@pytest.fixture
def site(redis_server: RealServer, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv(VARIABLE, "k" * 32)
    opened = Site(redis_server.url, namespace, tmp_path)
    yield opened
    opened.close()


def exceptions(history: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    return [event["exception"] for event in history if "exception" in event]


def test_each_attempt_leaves_its_own_exception_in_the_history(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """DESIGN 6: attempts differ, and the last one alone does not say why the first one failed."""
    caplog.set_level(logging.INFO)
    tools, attempts = Registry(), iter((NotStarted("busy", retry_after=0.01), ValueError("odd\nlines"), None))

    @tools.tool(effect="read", retry=5)
    def look(at: str) -> str:
        error = next(attempts)
        if error:
            raise error
        return json.loads("{")  # type: ignore[no-any-return]  # raised in the standard library, for this line

    with site.worker_here(tools):
        record = site.wait_for(site.submit("look", at="x"), State.FAILED)

    found = exceptions(record.history)
    assert [one["type"] for one in found] == [
        "NotStarted",
        "ValueError",
        "JSONDecodeError",
        "StopIteration",
        "StopIteration",
        "StopIteration",
    ], "of five attempts, and one more since nothing had started in the first"
    assert [one.get("message", "")[:9] for one in found[:3]] == ["busy", "odd lines", "Expecting"]
    assert {one["file"] for one in found} == {__file__}
    lines = Path(__file__).read_text().splitlines()
    assert "json.loads" in lines[found[2]["line"] - 1]
    assert "attempt 2 ended with ValueError" in caplog.text
    assert "raise error\nValueError: odd" in caplog.text


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_of_a_tool_with_secrets_no_text_of_an_exception_is_kept_but_where_it_was_raised(
    site: Site, caplog: pytest.LogCaptureFixture, isolation: Any
) -> None:
    """faults 1: an unforeseen exception may spell the secret as nobody would think of."""
    caplog.set_level(logging.DEBUG)
    tools = Registry()

    @tools.tool(secret="key", isolation=isolation)
    def use(key: str) -> None:
        try:
            raise KeyError("in another order: " + key[::-1])
        except KeyError as error:
            raise RuntimeError("letter by letter: " + "-".join(key)) from error

    with site.worker_here(tools):
        record = site.wait_for(site.submit("use", key="sk-abcdefgh-1234"), State.UNKNOWN)

    [found] = exceptions(record.history)
    assert (found["type"], found["file"], "message" in found) == ("RuntimeError", __file__, False)
    assert "letter by letter" in Path(__file__).read_text().splitlines()[found["line"] - 1]
    told = caplog.text + str(record.fields) + str(record.history)
    assert "s-k--" not in told
    assert "4321-" not in told
    assert "in another order" not in told
    assert "in use" in caplog.text


def test_a_tool_error_is_told_with_its_text_and_the_command_line_shows_it(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = Registry()

    @tools.tool(secret="key")
    def refuse(key: str) -> None:
        raise ToolError(f"the key {key} is too old")

    with site.worker_here(tools):
        record = site.wait_for(site.submit("refuse", key="sk-abcdefgh-1234"), State.FAILED)

    [found] = exceptions(record.history)
    assert found["message"] == "the key *** is too old"
    said = CommandLine(capsys, ("--redis", site.url, "--namespace", site.namespace))("call", record.key)
    assert "ToolError: the key *** is too old" in said.out
    assert Path(__file__).name in said.out
