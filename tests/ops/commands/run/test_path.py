"""The whole path by the command line: a worker of the user's own tools, turns in, outcomes and replies out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.processes.processes import Child
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until

TRANSCRIPTS = Path(__file__).parents[4] / "ops" / "demo" / "transcripts"
APP = """
from pathlib import Path
from toolonce.worker.tools.registry import Registry
from toolonce.worker.tools.errors import ToolError

tools = Registry()
EFFECTS = Path(__file__).parent / "effects"

@tools.tool(effect="read")
def get_weather(city: str) -> dict:
    return {"city": city}

@tools.tool
def save_note(title: str, text: str) -> None:
    with EFFECTS.open("a") as file:
        file.write(title + "\\n")

@tools.tool
def create_invoice(customer: str, cents: int, reference: int) -> dict:
    raise ToolError("this customer is closed")
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


@pytest.fixture
def worker(app: Path, redis_server: RealServer, namespace: str) -> Iterator[Child]:
    with serving(app, redis_server.url, namespace) as child:
        yield child


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, redis_server: RealServer) -> Iterator[Shared]:
    """One worker for the tests that do not stop it; they keep apart by scope."""
    folder = tmp_path_factory.mktemp("app")
    (folder / "app.py").write_text(APP)
    with serving(folder, redis_server.url, "test-path"):
        yield Shared(folder, ["--redis", redis_server.url, "--namespace", "test-path"])


@dataclass(frozen=True)
class Shared:
    app: Path
    place: list[str]


@contextmanager
def serving(app: Path, url: str, namespace: str) -> Iterator[Child]:
    words = ("work", "--tools", "app:tools", "--concurrency", "2", "--log", "json")
    with Child.python("-m", "toolonce.ops", *words, "--redis", url, "--namespace", namespace, cwd=app) as child:
        child.wait_for_line("serves default")
        yield child


def effects(app: Path) -> list[str]:
    path = app / "effects"
    return path.read_text().splitlines() if path.exists() else []


def test_a_turn_goes_in_and_comes_back_once_however_often_it_is_submitted(
    toolonce: CommandLine, shared: Shared
) -> None:
    words = ("submit", "--scope", "again", str(TRANSCRIPTS / "weather.anthropic.sse"))
    before = len(effects(shared.app))

    first = toolonce(*words, "--json", place=shared.place)
    again = toolonce(*words, "--json", place=shared.place)

    assert first.code == 0
    assert [outcome["state"] for outcome in first.json["outcomes"]] == ["succeeded"] * 3
    assert first.json["outcomes"][0]["result"] == {"city": "Lisboa"}
    assert first.json["outcomes"][2]["result"] is None
    assert all(outcome["replayed"] for outcome in again.json["outcomes"])
    assert len(effects(shared.app)) == before + 1


def test_replies_are_the_providers_messages_in_order(toolonce: CommandLine, shared: Shared) -> None:
    words = ("submit", "--scope", "replies", "--replies", str(TRANSCRIPTS / "weather.anthropic.sse"))

    said = toolonce(*words, place=shared.place)

    assistant, results = said.json
    assert (assistant["role"], results["role"]) == ("assistant", "user")
    asked = [block["id"] for block in assistant["content"] if block["type"] == "tool_use"]
    assert [block["tool_use_id"] for block in results["content"]] == asked


def test_calls_at_hand_are_submitted_under_the_harness_own_step(
    toolonce: CommandLine, shared: Shared, tmp_path: Path
) -> None:
    calls = tmp_path / "calls.json"
    calls.write_text(json.dumps([{"name": "get_weather", "arguments": {"city": "東京 🗼"}, "id": "call_0"}]))

    words = ("submit", "--scope", "calls", "--turn-id", "step-1", "--calls", str(calls), "--json")
    said = toolonce(*words, place=shared.place)

    assert said.json["outcomes"][0]["result"] == {"city": "東京 🗼"}


def test_a_call_that_ended_badly_is_told_by_the_exit_code(toolonce: CommandLine, shared: Shared) -> None:
    words = ("submit", "--scope", "bad")
    failed = toolonce(*words, str(TRANSCRIPTS / "invoice.openai-responses.sse"), place=shared.place)
    cut = toolonce(*words, str(TRANSCRIPTS / "cut.anthropic.sse"), place=shared.place)

    assert failed.code == 1
    assert "this customer is closed" in failed.out
    assert cut.code == 1
    assert cut.err.startswith("toolonce: anthropic turn msg_demo_cut truncated")
    assert len(toolonce("calls", "--scope", "bad", "--json", place=shared.place).json["calls"]) == 1


def test_a_submission_that_does_not_wait_is_no_failure(toolonce: CommandLine, worker: Child, namespace: str) -> None:
    worker.pause()

    said = toolonce("submit", "--scope", "s", "--wait", "0", str(TRANSCRIPTS / "weather.anthropic.sse"))
    worker.resume()

    assert said.code == 0
    assert said.out.count("queued") == 3


def test_without_any_worker_a_submission_says_how_to_start_one(toolonce: CommandLine) -> None:
    said = toolonce("submit", "--scope", "s", str(TRANSCRIPTS / "weather.anthropic.sse"))

    assert said.code == 2
    assert "toolonce work" in said.err


def test_a_live_worker_is_shown_and_ends_in_order(toolonce: CommandLine, worker: Child) -> None:
    (row,) = toolonce("workers", "--json").json["workers"]
    assert row["pid"] == worker.pid
    assert (row["slots"], row["tools"]) == (2, ["get_weather", "save_note", "create_invoice"])

    assert worker.terminate() == 0
    assert toolonce("workers", "--json").json["workers"] == []
    assert all(json.loads(line)["message"] for line in worker.lines)


def test_up_serves_turns_and_inboxes_on_a_server_of_its_own_and_keeps_what_it_stored(
    app: Path, data_dir: Path, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(data_dir))
    monkeypatch.delenv("TOOLONCE_REDIS_URL", raising=False)
    monkeypatch.chdir(app)
    words = ("up", "--tools", "app:tools", "--concurrency", "2", "--log", "console")
    with Child.python("-m", "toolonce.ops", *words, cwd=app) as up:
        up.wait_for_line("serves default")
        direct = toolonce("submit", "--scope", "s", str(TRANSCRIPTS / "weather.anthropic.sse"), place=[])
        _add_to_inbox(toolonce("url", place=[]).out.strip())
        wait_until(lambda: effects(app) == ["trip", "inbox"], description="the inbox' call ran, too")
        assert up.terminate() == 0

    assert direct.code == 0
    with Child.python("-m", "toolonce.ops", "up", cwd=app) as up:
        up.wait_for_line("calls wait")
        kept = toolonce("stats", "--json", place=[]).json
    assert (kept["settled"], kept["open"], kept["balanced"]) == (4, 0, True)


def _add_to_inbox(url: str) -> None:
    import redis

    calls = json.dumps([{"name": "save_note", "arguments": {"title": "inbox", "text": ""}}])
    with redis.Redis.from_url(url) as client:
        client.sadd("{toolonce}:inboxes", "acme")
        client.xadd("{toolonce}:inbox:acme", {"scope": "s", "turn": "1", "calls": calls})
