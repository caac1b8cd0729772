"""Running calls again on a person's word: what is said first, and what is done."""

from __future__ import annotations

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec


def test_a_dry_run_says_what_would_run_replay_and_be_refused_and_changes_nothing(
    scene: LiveScene, toolonce: CommandLine
) -> None:
    scene.publish(spec("pay"), spec("look", "read"))
    keys = [
        scene.failed("a", of=spec("look", "read")),
        scene.unknown("b").call,
        scene.succeeded("c"),
        scene.failed("d", of=spec("gone")),
        scene.submit("e"),
    ]

    said = toolonce("retry", *keys, "--dry-run", "--json")

    plans = {plan["call"]: (plan["will"], plan["plan"]) for plan in said.json["plan"]}
    assert plans[keys[0]] == (True, "would run again as attempt 2")
    assert plans[keys[1]][0]
    assert "AGAIN" in plans[keys[1]][1]
    assert plans[keys[2]] == (False, "would be replayed: it has succeeded")
    assert "no worker" in plans[keys[3]][1]
    assert plans[keys[4]] == (False, "is queued and will go on by itself")
    assert said.json["done"] == []
    assert said.code == 1
    assert [str(scene.state(key)) for key in keys] == ["failed", "unknown", "succeeded", "failed", "queued"]


def test_a_failed_call_is_queued_again_with_who_and_why(scene: LiveScene, toolonce: CommandLine) -> None:
    scene.publish(spec("pay"))
    key = scene.failed("a")

    said = toolonce("retry", key, "--reason", "the bank is back")

    assert said.code == 0
    record = scene.record(key)
    assert record.state == "queued"
    assert (record.history[-1]["actor"], record.history[-1]["reason"]) == ("alice", "the bank is back")


def test_a_mutating_call_in_doubt_runs_again_only_after_a_yes(scene: LiveScene, toolonce: CommandLine) -> None:
    scene.publish(spec("pay"))
    key = scene.unknown("a").call

    refused = toolonce("retry", key, "--reason", "r")
    assert scene.state(key) == "unknown"
    agreed = toolonce("retry", key, "--reason", "r", "--yes")

    assert refused.code == 4
    assert "twice" in refused.err
    assert agreed.code == 0
    assert scene.state(key) == "queued"


def test_many_calls_need_a_yes(scene: LiveScene, toolonce: CommandLine) -> None:
    scene.publish(spec("pay"))
    keys = [scene.failed(name) for name in "abc"]
    words = ("retry", "--state", "failed", "--reason", "r")

    refused = toolonce(*words)
    assert {str(scene.state(key)) for key in keys} == {"failed"}
    agreed = toolonce(*words, "--yes")

    assert (refused.code, agreed.code) == (4, 0)
    assert {str(scene.state(key)) for key in keys} == {"queued"}


def test_arguments_that_no_longer_fit_the_tool_are_refused(scene: LiveScene, toolonce: CommandLine) -> None:
    key = scene.failed("a", arguments={"cents": "5"})
    scene.publish(spec("pay", schema={"type": "object", "properties": {"cents": {"type": "integer"}}}))

    said = toolonce("retry", key, "--reason", "r")

    assert said.code == 1
    assert "$.cents" in said.out
    assert scene.state(key) == "failed"


@pytest.mark.parametrize("words", [["--reason", "r"], ["{key}"], ["{key}", "--state", "failed", "--reason", "r"]])
def test_a_retry_needs_calls_by_one_way_and_a_reason(scene: LiveScene, toolonce: CommandLine, words: list[str]) -> None:
    key = scene.failed("a")

    said = toolonce("retry", *(word.format(key=key) for word in words))

    assert said.code == 2
    assert scene.state(key) == "failed"


def test_of_two_operators_one_wins_and_the_other_is_told_what_happened(
    scene: LiveScene, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both looked at the same call in doubt; the second acts on a picture that is no longer true."""
    scene.publish(spec("pay"))
    run = scene.unknown("a")
    stale = scene.record(run.call)
    monkeypatch.setenv("TOOLONCE_ACTOR", "bob")
    toolonce("resolve", run.call, "--succeeded", "1", "--reason", "found it")
    monkeypatch.setenv("TOOLONCE_ACTOR", "alice")
    monkeypatch.setattr("toolonce.ops.options.selection.get_record", lambda *_: stale)

    said = toolonce("retry", run.call, "--reason", "r", "--yes")

    assert said.code == 1
    assert "succeeded by now" in said.out
    assert scene.state(run.call) == "succeeded"
    assert [event["actor"] for event in scene.record(run.call).history][-1] == "bob"


def test_a_word_about_an_earlier_attempt_does_not_reach_a_later_one(
    scene: LiveScene, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state is the same again, and the fence is not: what alice knows is about a run that is history."""
    scene.publish(spec("pay"))
    run = scene.unknown("a")
    stale = scene.record(run.call)
    toolonce("retry", run.call, "--reason", "bob", "--yes")
    later = scene.lost(scene.take(lease_ms=1))
    monkeypatch.setattr("toolonce.ops.options.selection.get_record", lambda *_: stale)

    said = toolonce("retry", run.call, "--reason", "r", "--yes")

    assert said.code == 1
    assert f"unknown by now (fence {later.fence})" in said.out
    assert scene.state(run.call) == "unknown"


def test_a_retry_says_that_its_approval_is_asked_for_anew(scene: LiveScene, toolonce: CommandLine) -> None:
    """Faults 3."""
    scene.publish(spec("pay", approval="always"), spec("bill", hold_duplicates=True))
    approved = scene.failed("approved")
    bill = spec("bill", hold_duplicates=True)
    scene.submit("first", {"n": 1}, of=bill)
    scene.take()
    repeat = scene.submit("second", {"n": 1}, of=bill)
    scene.approve(repeat)
    scene.fail(scene.take())

    planned = toolonce("retry", approved, repeat, "--dry-run", "--json").json["plan"]
    done = toolonce("retry", repeat, "--yes", "--reason", "once more", "--json")

    assert all("after a person has approved it again" in one["plan"] for one in planned), planned
    assert done.json["done"][0]["verdict"] == "held"
    assert scene.record(repeat).fields.reason == "duplicate"
