"""Settling a call in doubt by a person's word."""

from __future__ import annotations

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.store.live_store import LiveScene


@pytest.mark.parametrize("value", ["0", "false", '""', "[]", "{}", "null", "9007199254740993", '{"invoice": 17}'])
def test_an_unknown_call_that_happened_gets_the_value_that_was_found(
    scene: LiveScene, toolonce: CommandLine, value: str
) -> None:
    run = scene.unknown("a")

    said = toolonce("resolve", run.call[:12], "--succeeded", value, "--reason", "found it")

    assert (said.code, said.err) == (0, "")
    stored = scene.record(run.call)
    assert stored.state == "succeeded"
    assert stored.fields.result == value
    assert (stored.history[-1]["actor"], stored.history[-1]["reason"]) == ("alice", "found it")


def test_an_unknown_call_that_did_not_happen_is_failed(scene: LiveScene, toolonce: CommandLine) -> None:
    run = scene.unknown("a")

    said = toolonce("resolve", run.call, "--failed", "not in the books", "--reason", "looked", "--json")

    assert said.json["state"] == "failed"
    failure = scene.record(run.call).failure
    assert failure
    assert failure.message == "not in the books"


@pytest.mark.parametrize(("said", "state"), [("--succeeded=7", "succeeded"), ("--failed=not in the books", "failed")])
def test_a_call_held_since_the_store_went_back_is_resolved_by_whoever_has_compared(
    scene: LiveScene, toolonce: CommandLine, said: str, state: str
) -> None:
    """faults 7"""
    key = scene.submit("a")
    scene.claim(scene.pop() or "", seen=10_000)
    assert any("resolve" in step for step in toolonce("call", key, "--json").json["next"])

    done = toolonce("resolve", key, said, "--reason", "looked", "--request-id", "r1", "--json")
    again = toolonce("resolve", key, said, "--reason", "looked", "--request-id", "r1", "--json")

    assert (done.code, done.json["state"]) == (0, state)
    assert again.json == done.json
    assert scene.state(key) == state


def test_only_unknown_calls_are_resolved(scene: LiveScene, toolonce: CommandLine) -> None:
    key = scene.succeeded("a", 1)

    said = toolonce("resolve", key, "--succeeded", "2", "--reason", "no")

    assert said.code == 1
    assert "succeeded" in said.err
    assert scene.record(key).fields.result == "1"


@pytest.mark.parametrize("value", ["ok", "NaN", "[Infinity]", "1e999", "[" * 100_000])
def test_what_is_no_json_is_refused_before_anything_is_asked(toolonce: CommandLine, value: str) -> None:
    said = toolonce("resolve", "0" * 32, "--succeeded", value, "--reason", "r", place=["--redis", "redis://nowhere:1"])

    assert said.code == 2
    assert "JSON" in said.err


def test_a_word_without_a_reason_is_refused(scene: LiveScene, toolonce: CommandLine) -> None:
    run = scene.unknown("a")

    said = toolonce("resolve", run.call, "--failed", "no")

    assert said.code == 2
    assert "--reason" in said.err
    assert scene.state(run.call) == "unknown"


def test_the_same_request_is_answered_again_and_done_once(scene: LiveScene, toolonce: CommandLine) -> None:
    run = scene.unknown("a")
    words = ("resolve", run.call, "--succeeded", "1", "--reason", "r", "--request-id", "ticket-7")

    first, second = toolonce(*words), toolonce(*words)

    assert (first.code, second.code) == (0, 0)
    assert first.out == second.out
    assert [event["op"] for event in scene.record(run.call).history].count("resolve") == 1


@pytest.mark.parametrize("words", [["--failed", "no", "--reason", " "], ["--failed", "", "--reason", "looked"]])
def test_nobody_settles_a_call_without_words(scene: LiveScene, toolonce: CommandLine, words: list[str]) -> None:
    key = scene.unknown("a").call

    said = toolonce("resolve", key, *words)

    assert said.code == 2
    assert scene.state(key) == "unknown"


def test_the_second_operator_is_told_who_settled_it_and_why(scene: LiveScene, toolonce: CommandLine) -> None:
    key = scene.unknown("a").call
    toolonce("resolve", key, "--failed", "no", "--reason", "looked at 03:10", "--actor", "bob")

    said = toolonce("resolve", key, "--succeeded", "1", "--reason", "r")

    assert said.code == 1
    assert "is failed (bob, looked at 03:10" in said.err
