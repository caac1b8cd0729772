"""`toolonce pause` and `resume`: what they take and tell, and where else a pause is shown."""

from __future__ import annotations

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec
from toolonce.store.operations.runs import NotRun

ANN = ("--actor", "ann", "--reason", "the bank is down")


@pytest.fixture
def parked(scene: LiveScene, toolonce: CommandLine) -> str:
    """Ann has paused the tool; two calls wait, and one of them, whose key this is, is parked."""
    scene.publish(spec("pay"))
    assert toolonce("pause", "tool:pay", *ANN).code == 0
    key = scene.submit("a", tenant="acme")
    job = scene.pop()
    assert job
    assert scene.claim(job) == NotRun("parked", "pause tool:pay")
    scene.submit("b", tenant="acme")
    return key


def test_a_pause_is_set_shown_and_ended(scene: LiveScene, toolonce: CommandLine) -> None:
    scene.publish(spec("pay", queue="billing"))
    (row,) = toolonce("pause", "tool:pay", *ANN, "--json").json["pauses"]
    assert {name: row[name] for name in ("target", "paused", "by", "reason", "queued", "parked")} == {
        "target": "tool:pay", "paused": True, "by": "ann", "reason": "the bank is down", "queued": 0, "parked": 0,
    }  # fmt: skip
    assert row["since"] == row["at"]
    assert toolonce("pause", "queue:billing", "tenant:acme").code == 0
    listed = toolonce("pause", "--json").json["pauses"]
    assert [one["target"] for one in listed] == ["queue:billing", "tenant:acme", "tool:pay"]
    (line,) = [line for line in toolonce("pause").out.splitlines() if "tool:pay" in line]
    assert line.split("  ")[0] == "tool:pay"
    assert "ann" in line
    assert "the bank is down" in line

    said = toolonce("resume", "tool:pay", "queue:billing", "tenant:acme")
    assert (said.code, said.out) == (0, "")
    assert "tool:pay goes on: it was paused for 0s by ann: the bank is down; 0 calls wait" in said.err
    assert toolonce("pause", "--json").json == {"pauses": []}


def test_nothing_paused_is_said_with_the_store_that_was_looked_at(toolonce: CommandLine) -> None:
    said = toolonce("pause")
    assert (said.code, said.out) == (0, "")
    assert said.err.startswith("nothing is paused in ")
    said = toolonce("resume", "tool:pay")
    assert said.code == 0
    assert "tool:pay was not paused in " in said.err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["pause", "pay"], "a pause is for tool:NAME, queue:NAME, tenant:NAME"),
        (["pause", "tool:pay", "tenant:*"], "a pause is for"),
        (["resume", "everything"], "a pause is for"),
        (["resume"], "required: TARGET"),
        (["pause", "--reason", "r"], "--reason is for what is paused"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_way_out_and_changes_nothing(
    toolonce: CommandLine, words: list[str], hint: str
) -> None:
    said = toolonce(*words)
    assert said.code == 2
    assert hint in said.err
    assert toolonce("pause", "--json").json == {"pauses": []}


def test_a_name_that_nobody_knows_is_paused_and_remarked(scene: LiveScene, toolonce: CommandLine) -> None:
    scene.publish(spec("pay", queue="billing"))
    assert "no worker has published a tool 'pya' yet" in toolonce("pause", "tool:pya").err
    assert "no tool names a queue 'biling' yet" in toolonce("pause", "queue:biling").err
    assert "is the name right" not in toolonce("pause", "tool:pay", "queue:billing").err


def test_each_view_tells_what_is_paused_by_whom_and_how_many_calls_wait(parked: str, toolonce: CommandLine) -> None:
    for words in (["stats"], ["workers"], ["tools", "list"], ["pause"]):
        (row,) = toolonce(*words, "--json").json["pauses"]
        assert (row["target"], row["by"], row["queued"], row["parked"]) == ("tool:pay", "ann", 2, 1), words
    for words in (["stats"], ["tools", "list"], ["pause"]):
        assert "the bank is down" in toolonce(*words).out, words
    assert toolonce("stats", "--json").json["controls"] == []


def test_a_call_says_that_it_is_paused_by_whom_and_what_to_do(parked: str, toolonce: CommandLine) -> None:
    view = toolonce("call", parked, "--json").json
    assert (view["state"], view["reason"]) == ("queued", "paused")
    assert "limited_by" not in view
    assert [(one["target"], one["by"]) for one in view["paused_by"]] == [("tool:pay", "ann")]
    assert view["next"][0] == "toolonce resume tool:pay"
    assert 0 < view["deadline_left_ms"] <= spec().deadline_ms
    assert "deadline_at" not in view
    said = toolonce("call", parked).out
    assert "parked by the pause of tool:pay, its deadline stands still with " in said
    assert "tool:pay, paused for 0s by ann: the bank is down" in said


def test_calls_that_wait_for_a_resume_are_listed_whether_they_are_parked_or_not(
    scene: LiveScene, parked: str, toolonce: CommandLine
) -> None:
    scene.submit("c", of=spec("look", "read"))
    rows = toolonce("calls", "--paused", "--json").json["calls"]
    assert [row["paused_by"] for row in rows] == [["tool:pay"], ["tool:pay"]]
    assert parked in {row["call"] for row in rows}
    assert toolonce("calls").out.count("paused: tool:pay") == 2
    assert toolonce("calls", "--paused", "--state", "failed", "--json").json["calls"] == []
    planned = toolonce("cancel", "--paused", "--dry-run", "--json").json["plan"]
    assert len(planned) == 2
    assert toolonce("cancel", parked).code == 0
    assert len(toolonce("calls", "--paused", "--json").json["calls"]) == 1


def test_calls_that_come_back_after_a_resume_are_shown_until_they_are_back(
    scene: LiveScene, parked: str, toolonce: CommandLine
) -> None:
    (row,) = toolonce("resume", "tool:pay", "--json").json["pauses"]
    assert (row["paused"], row["since"], row["parked"]) == (False, None, 1)
    assert "parked calls come back" in toolonce("pause").out
    scene.tick()
    assert toolonce("pause", "--json").json["pauses"] == []


def test_a_second_person_who_pauses_is_named_and_the_pause_lasts_since_the_first(
    parked: str, toolonce: CommandLine
) -> None:
    (before,) = toolonce("pause", "--json").json["pauses"]
    (after,) = toolonce("pause", "tool:pay", "--actor", "bob", "--json").json["pauses"]
    assert (after["by"], after["since"]) == ("bob", before["since"])
    assert after["at"] > before["at"]


def test_metrics_tell_what_is_paused_and_how_many_calls_wait(parked: str, toolonce: CommandLine) -> None:
    said = toolonce("metrics", "--once").out
    assert 'toolonce_paused_since_seconds{target="tool:pay"} 1.' in said
    assert 'toolonce_paused_calls{target="tool:pay"} 2.0' in said
    assert 'toolonce_parked_calls{target="tool:pay"} 1.0' in said


def test_doctor_names_a_pause_and_not_what_follows_from_it(scene: LiveScene, toolonce: CommandLine) -> None:
    billing = spec("pay", queue="billing")
    scene.publish(billing)
    toolonce("pause", "queue:billing", *ANN)
    scene.submit("a", of=billing)
    found = {one["code"]: one for one in toolonce("doctor", "--json").json["findings"]}
    assert found["paused"]["mend"] == "toolonce resume queue:billing"
    assert "1 calls wait" in found["paused"]["what"]
    assert "unserved_queue" not in found
