"""Cancelling, approving and denying."""

from __future__ import annotations

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec


def held(scene: LiveScene, call_id: str = "a") -> str:
    return scene.submit(call_id, {"cents": 5}, of=spec(approval="always"), held="approval")


def test_a_waiting_call_is_cancelled_and_never_runs(scene: LiveScene, toolonce: CommandLine) -> None:
    key = scene.submit("a")

    said = toolonce("cancel", key, "--reason", "changed her mind")

    assert said.code == 0
    assert scene.state(key) == "cancelled"


def test_a_running_call_is_asked_to_stop_and_not_called_cancelled(scene: LiveScene, toolonce: CommandLine) -> None:
    run = scene.start("a")

    said = toolonce("cancel", run.call, "--json")

    assert said.json["done"][0]["verdict"] == "requested"
    assert scene.state(run.call) == "running"


@pytest.mark.parametrize("make", ["succeeded", "failed"])
def test_a_settled_call_cannot_be_cancelled(scene: LiveScene, toolonce: CommandLine, make: str) -> None:
    key = getattr(scene, make)("a")

    said = toolonce("cancel", key)

    assert said.code == 1
    assert scene.state(key) == make


def test_an_approval_shows_the_arguments_and_needs_a_yes(scene: LiveScene, toolonce: CommandLine) -> None:
    key = held(scene)

    refused = toolonce("approve", key)
    assert scene.state(key) == "held"
    agreed = toolonce("approve", key, "--yes", "--reason", "ticket 7")

    assert refused.code == 4
    assert 'pay {"cents": 5}' in refused.out
    assert agreed.code == 0
    assert scene.state(key) == "queued"


def test_who_names_the_idempotency_key_has_seen_the_arguments(scene: LiveScene, toolonce: CommandLine) -> None:
    key = held(scene)

    said = toolonce("approve", scene.record(key).idempotency_key)

    assert said.code == 0
    assert scene.state(key) == "queued"


def test_a_denied_call_is_refused_and_a_second_decision_is_told_of_the_first(
    scene: LiveScene, toolonce: CommandLine
) -> None:
    key = held(scene)

    denied = toolonce("deny", key, "--reason", "no")
    late = toolonce("approve", key, "--yes")

    assert denied.code == 0
    assert scene.state(key) == "refused"
    assert late.code == 1
    assert "alice has already decided" in late.out


def test_only_calls_that_wait_for_approval_are_decided(scene: LiveScene, toolonce: CommandLine) -> None:
    key = scene.submit("a")

    assert toolonce("approve", key, "--yes").code == 1
    assert toolonce("deny", key).code == 1
    assert scene.state(key) == "queued"


@pytest.mark.parametrize("many", ["-1", "0", "x", "9999999"])
def test_a_limit_that_makes_no_sense_is_an_error_of_usage(toolonce: CommandLine, many: str) -> None:
    said = toolonce("cancel", "--state", "queued", f"--limit={many}")

    assert (said.code, "is not a number from 1" in said.err) == (2, True)


def test_calls_chosen_by_filters_are_confirmed_even_where_only_one_is_found(
    scene: LiveScene, toolonce: CommandLine
) -> None:
    key = scene.submit("a")

    said = toolonce("cancel", "--state", "queued")

    assert said.code == 4
    assert scene.state(key) == "queued"


def test_whoever_acts_on_many_is_told_that_there_are_more(scene: LiveScene, toolonce: CommandLine) -> None:
    keys = [scene.submit(call_id) for call_id in "abc"]

    some = toolonce("cancel", "--state", "queued", "--limit", "2", "--yes")
    rest = toolonce("cancel", "--state", "queued", "--limit", "2", "--yes")

    assert "more than 2 calls" in some.err
    assert "more than" not in rest.err
    assert {str(scene.state(key)) for key in keys} == {"cancelled"}
