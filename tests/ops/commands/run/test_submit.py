"""Submit and wait from the command line: data on standard output, progress and the handle on standard error."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.processes.processes import Child
from tests.support.servers.redis_server import RealServer
from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec
from tests.support.stream.speech import stream
from tests.support.wait import wait_until
from toolonce.stream.turns.turn import DIALECTS

CALLS = [("pay", "c1", {"cents": 5}), ("nope", "c2", {})]


@pytest.fixture(autouse=True)
def _published(scene: LiveScene) -> None:
    scene.publish(spec("pay"))


def written(folder: Path, data: bytes) -> str:
    (folder / "turn").write_bytes(data)
    return str(folder / "turn")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_is_submitted_left_and_picked_up_as_the_providers_messages(
    scene: LiveScene, toolonce: CommandLine, tmp_path: Path, dialect: str
) -> None:
    said = toolonce(
        "submit", "--scope", "a b", "--turn-id", "turn-1", "--wait", "0", "--json",
        written(tmp_path, stream(dialect, "turn-1", CALLS)),
    )  # fmt: skip
    scene.settle(scene.take(), {"paid": 5})
    later = toolonce("wait", "--scope", "a b", "turn-1", "--replies", "--dialect", dialect)

    assert [outcome["state"] for outcome in said.json["outcomes"]] == ["queued", "refused"]
    assert "1 of 2 calls are not finished and continue" in said.err
    assert "toolonce wait --scope 'a b' turn-1" in said.err
    assert later.code == 1  # one of them was refused
    assert "paid" in later.out
    assert "unknown_tool" in later.out
    assert later.err == ""


@pytest.mark.parametrize("dialect", ["ollama", "bedrock-converse"])
def test_a_stream_without_a_turn_id_is_refused_with_the_option_that_gives_one(
    toolonce: CommandLine, tmp_path: Path, dialect: str
) -> None:
    said = toolonce("submit", "--scope", "s", written(tmp_path, stream(dialect, "turn-1", CALLS)))

    assert said.code == 2
    assert "--turn-id ID" in said.err


def test_replies_follow_the_turn_that_they_answer(scene: LiveScene, toolonce: CommandLine, tmp_path: Path) -> None:
    file = written(tmp_path, stream("anthropic", "turn-1", CALLS[:1], "I pay."))
    toolonce("submit", "--scope", "s", "--wait", "0", file)
    scene.settle(scene.take(), {"paid": 5})
    said = toolonce("submit", "--scope", "s", "--replies", file)

    assert said.code == 0
    assert [message["role"] for message in said.json] == ["assistant", "user"]
    assert said.json[1]["content"][0]["tool_use_id"] == "c1"


def test_an_id_that_an_earlier_turn_used_goes_out_under_another_one_which_every_view_tells(
    scene: LiveScene, toolonce: CommandLine, tmp_path: Path
) -> None:
    for turn in ("turn-1", "turn-2"):
        file = written(tmp_path, stream("anthropic", turn, CALLS[:1]))
        stored = toolonce("submit", "--scope", "s", "--wait", "0", "--json", file)
    said = toolonce("submit", "--scope", "s", "--wait", "0", "--replies", file)
    [outcome] = stored.json["outcomes"]

    assert outcome["id"] == "c1"
    assert outcome["reply_id"].startswith("call_")
    assert said.json[0]["content"][-1]["id"] == said.json[1]["content"][0]["tool_use_id"] == outcome["reply_id"]
    assert toolonce("call", outcome["call"], "--json").json["reply_id"] == outcome["reply_id"]
    assert f"replies use {outcome['reply_id']}" in " ".join(toolonce("call", outcome["call"]).out.split())


def test_a_wait_that_is_over_too_soon_says_that_the_calls_go_on(
    scene: LiveScene, toolonce: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "calls.json").write_text('[{"name": "pay", "arguments": {}}]')
    words = ["submit", "--scope", "s", "--turn-id", "t", "--calls", str(tmp_path / "calls.json"), "--wait", "10ms"]
    said = toolonce(*words, "--json")

    assert said.code == 1
    assert said.json["outcomes"][0]["state"] == "queued"
    assert "toolonce wait --scope s t" in said.err


def test_a_cut_stream_is_refused_in_one_line_and_stores_nothing(
    scene: LiveScene, toolonce: CommandLine, tmp_path: Path
) -> None:
    whole = stream("anthropic", "turn-1", CALLS)
    said = toolonce("submit", "--scope", "s", written(tmp_path, whole[: len(whole) // 2]))

    assert (said.code, said.out) == (1, "")
    assert "truncated" in said.err
    assert scene.stats().counts.get("admitted", 0) == 0


def test_a_turn_that_nobody_submitted_cannot_be_waited_for(toolonce: CommandLine) -> None:
    said = toolonce("wait", "--scope", "s", "nowhere")

    assert said.code == 1
    assert "no calls are stored for turn 'nowhere'" in said.err


def test_replies_of_a_call_alone_are_refused(toolonce: CommandLine) -> None:
    assert toolonce("wait", "abc", "--replies").code == 2


def test_a_call_that_waits_for_a_person_is_not_said_to_go_on_by_itself(
    scene: LiveScene, toolonce: CommandLine, tmp_path: Path
) -> None:
    scene.publish(spec("wire", approval="always"))
    (tmp_path / "calls.json").write_text(json.dumps([{"name": "wire", "arguments": {}}]))

    said = toolonce("submit", "--scope", "s", "--turn-id", "t", "--calls", str(tmp_path / "calls.json"), "--wait", "0")

    assert "1 of 1 calls wait for approval: toolonce approve " in said.err
    assert "by themselves" not in said.err


def test_ctrl_c_while_waiting_says_what_goes_on_and_how_to_come_back(
    scene: LiveScene, redis_server: RealServer, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "calls.json").write_text(json.dumps([{"name": "pay", "arguments": {}, "id": "c1"}]))
    place = ["--redis", redis_server.url, "--namespace", namespace]
    words = ["submit", "--scope", "s", "--turn-id", "t", "--calls", str(tmp_path / "calls.json"), *place]
    with Child.python("-m", "toolonce.ops", *words) as child:
        wait_until(lambda: scene.live.redis.pubsub_channels(f"{{{namespace}}}:wake:*"), 20, "it waits")
        child.signal(signal.SIGINT)
        assert child.wait() == 130

    assert "1 of 1 calls are not finished and continue; wait for them: toolonce wait --scope s t" in child.output
    assert "Traceback" not in child.output
    assert scene.queued_jobs()


def test_a_turn_that_used_up_its_tokens_is_neither_shown_as_whole_nor_submitted(
    scene: LiveScene, toolonce: CommandLine, tmp_path: Path
) -> None:
    """Faults 19: the recorded usage is 7 output tokens."""
    file = written(tmp_path, stream("anthropic", "turn-1", CALLS[:1]))
    words = ["submit", "--scope", "s", "--wait", "0", file, "--max-tokens"]

    shown = toolonce("decode", "--json", file, "--max-tokens", "7", place=[])
    cut, drafts = toolonce(*words, "7"), toolonce("decode", "--drafts", file, "--max-tokens", "7", place=[])
    assert (shown.json["outcome"], cut.code) == ("truncated", 1)
    assert 'TurnEnded {"outcome": "truncated"}' in drafts.err
    assert "used up its 7 tokens" in cut.err
    assert toolonce("stats", "--json").json["admitted"] == 0
    assert toolonce(*words, "8").code == 0
    assert toolonce("replay", "--scope", "s", "--turn", file, "--max-tokens", "7").code == 1
    assert toolonce("submit", "--scope", "s", "--calls", file, "--turn-id", "1", "--max-tokens", "7").code == 2


def test_a_turn_in_two_submissions_is_waited_for_and_answered_without_a_traceback(
    scene: LiveScene, toolonce: CommandLine, tmp_path: Path
) -> None:
    """Faults 22."""
    scene.publish(spec("look", "read"))
    for name in ("c1", "c2"):
        calls = tmp_path / f"{name}.json"
        calls.write_text(json.dumps([{"name": "look", "arguments": {}, "id": name}]))
        submitted = toolonce("submit", "--scope", "s", "--turn-id", "t", "--calls", str(calls), "--wait", "0")
        assert submitted.code == 0, submitted.err

    done = toolonce("wait", "--scope", "s", "t", "--timeout", "0", "--replies", "--dialect", "openai-chat")

    assert "Traceback" not in done.err
    assert [message["tool_call_id"] for message in done.json] == ["c1", "c2"]
