"""G8: a secret in twenty spellings, through every way in which a handler can say it; then everything is searched."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.processes.leaky_tools import NUMBER, SECRET, SPELLINGS, TOOLS, needles
from tests.support.processes.processes import Child
from tests.support.servers.everything import everything_stored, files_of
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.store.model.keyring import VARIABLE
from toolonce.store.model.outcomes import Outcome
from toolonce.store.model.states import State
from toolonce.stream.harness.client import Client
from toolonce.stream.turns.turn import ToolCall

NAMESPACE = "spellings"
ENDS = {
    "returns": State.SUCCEEDED, "tells": State.FAILED, "raises": State.UNKNOWN, "raises_apart": State.UNKNOWN,
    "reconciles": State.FAILED, "forbidden": State.REFUSED,
}  # fmt: skip


@pytest.fixture
def toolonce(own_server: RealServer, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys, ("--redis", own_server.url, "--namespace", NAMESPACE))


def is_at_rest(outcome: Outcome) -> bool:
    """In the state that its tool ends in; a call that never starts ends when its deadline has passed."""
    return outcome.settled if outcome.tool == "tries" else outcome.state is ENDS[outcome.tool]


def all_calls() -> list[ToolCall]:
    pairs = [(tool, way) for tool in TOOLS for way in SPELLINGS]
    return [
        ToolCall(tool, {"key": SECRET, "way": way, "pin": NUMBER}, f"{tool} {way}", "function", position)
        for position, (tool, way) in enumerate(pairs)
    ]


def shown(toolonce: CommandLine, outcomes: tuple[Outcome, ...]) -> Iterator[str]:
    for words in (
        ("calls",), ("calls", "--json"), ("tail", "--last", "5000", "--for", "0s"),
        ("tail", "--last", "5000", "--for", "0s", "--json"), ("stats", "--json"), ("doctor", "--json"),
        *(("call", outcome.key, "--json") for outcome in outcomes), *(("call", outcome.key) for outcome in outcomes),
    ):  # fmt: skip
        said = toolonce(*words)
        assert said.out
        yield said.out + said.err


@pytest.mark.timeout(240)
def test_a_secret_is_nowhere_in_any_spelling(
    own_server: RealServer, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """faults 1"""
    keys = "the key of these tests"
    monkeypatch.setenv(VARIABLE, keys)
    place = ("--redis", own_server.url, "--namespace", NAMESPACE, "--log", "json")
    serve = ("--tools", "tests.support.processes.leaky_tools:tools", "--log-level", "debug", "--lease", "1s")
    command = ("-m", "toolonce.ops", "work", *serve, *place)
    with (
        Child.python(*command, env={VARIABLE: keys}) as worker,
        Client(own_server.url, scope="tenant-1/talk", namespace=NAMESPACE) as client,
    ):
        worker.wait_for_line("serves default")
        batch = client.submit_calls(all_calls(), turn_id="turn-1")
        wait_until(lambda: all(is_at_rest(one) for one in batch.refresh()), 120, "all calls are at rest")
        outcomes = batch.outcomes
        replies = [batch.replies("anthropic"), batch.replies("google-generate")]
        people = "\n".join(shown(toolonce, outcomes[::7]))
        worker.terminate()
        worker.wait()

    places = {
        "stored": "\n".join(everything_stored(own_server)),
        "files": b"\n".join(files_of(own_server.folder)).decode(errors="replace"),
        "outcomes": repr(outcomes),
        "replies": json.dumps(replies) + json.dumps(replies, ensure_ascii=False),
        "shown": people,
        "log": worker.output,
    }
    found = {(place, needle) for place, text in places.items() for needle in needles() if needle in text}
    assert found == set()
    assert "***" in places["shown"]
    assert "leaky_tools.py" in places["log"]
