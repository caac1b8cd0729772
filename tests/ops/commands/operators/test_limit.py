"""Limits that people set: what the command takes and tells, and where else they are shown."""

from __future__ import annotations

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec
from toolonce.store.operations.runs import NotRun

ANN = ("--actor", "ann", "--reason", "the bank asks")


@pytest.fixture
def limited(scene: LiveScene, toolonce: CommandLine) -> str:
    """The code says 5, ann says 1; one call runs, and one waits, whose key this is."""
    scene.publish(spec("pay", concurrency=5))
    assert toolonce("limit", "tool:pay", "1", *ANN).code == 0
    scene.start("a")
    waiting = scene.submit("b")
    job = scene.pop()
    assert job
    assert scene.claim(job) == NotRun("parked", "tool:pay")
    return waiting


def test_a_limit_is_set_shown_changed_and_cleared(scene: LiveScene, toolonce: CommandLine) -> None:
    scene.publish(spec("pay", concurrency=5))
    (before,) = toolonce("limit", "--json").json["limits"]
    assert (before["target"], before["in_force"], before["people"], before["code"]) == ("tool:pay", 5, None, 5)

    (after,) = toolonce("limit", "tool:pay", "2", *ANN, "--json").json["limits"]
    assert (after["in_force"], after["code"]) == (2, 5)
    assert {name: after["people"][name] for name in ("value", "by", "reason")} == {
        "value": 2, "by": "ann", "reason": "the bank asks",
    }  # fmt: skip
    assert toolonce("limit", "tenant:*", "16").code == 0
    assert [row["target"] for row in toolonce("limit", "--json").json["limits"]] == ["tenant:*", "tool:pay"]
    assert "2, 0s ago by ann: the bank asks" in toolonce("limit").out

    (cleared,) = toolonce("limit", "tool:pay", "--clear", "--json").json["limits"]
    assert (cleared["in_force"], cleared["people"]) == (5, None)


def test_without_any_limit_the_command_says_where_it_looked(toolonce: CommandLine) -> None:
    said = toolonce("limit")
    assert (said.code, said.out) == (0, "")
    assert said.err.startswith("no limit in ")
    assert "no limit of tenant:acme in " in toolonce("limit", "tenant:acme").err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["pay", "5"], "a limit is for tool:NAME, tenant:NAME"),
        (["tool:*", "5"], "a limit is for"),
        (["queue:mail", "5"], "a limit is for"),
        (["tool:pay", "0"], "from 1 to 999999"),
        (["tool:pay", "-1"], "see"),
        (["tool:pay", "many"], "from 1 to 999999"),
        (["tool:pay", "1.5"], "from 1 to 999999"),
        (["--clear"], "--clear takes a target"),
        (["tool:pay", "5", "--clear"], "--clear takes a target and nothing else"),
        (["tool:pay", "--reason", "r"], "--reason is for a limit that is set"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_way_out(toolonce: CommandLine, words: list[str], hint: str) -> None:
    said = toolonce("limit", *words)
    assert said.code == 2
    assert hint in said.err


def test_a_name_that_no_worker_has_published_is_set_and_remarked(scene: LiveScene, toolonce: CommandLine) -> None:
    scene.publish(spec("pay"))
    said = toolonce("limit", "tool:pya", "5")
    assert said.code == 0
    assert "no worker has published a tool 'pya' yet" in said.err
    assert "no worker has published" not in toolonce("limit", "tool:pay", "5").err


def test_each_view_tells_both_numbers_and_who_has_set_the_one_that_counts(limited: str, toolonce: CommandLine) -> None:
    wanted = {"kind": "limit", "target": "tool:pay", "in_force": 1, "code": 5, "running": 1, "waiting": 1}
    for words in (["stats"], ["workers"], ["call", limited], ["tools", "list"]):
        (row,) = toolonce(*words, "--json").json["controls"]
        assert {name: row[name] for name in wanted} == wanted, words
        assert (row["people"]["by"], row["people"]["value"]) == ("ann", 1)
    for words in (["stats"], ["tools", "list"], ["call", limited]):
        assert "by ann: the bank asks" in toolonce(*words).out, words


def test_a_call_that_waits_for_a_limit_says_for_which(limited: str, toolonce: CommandLine) -> None:
    (row,) = toolonce("calls", "--state", "queued", "--json").json["calls"]
    assert (row["call"], row["limited_by"]) == (limited, "tool:pay")
    assert "limited by tool:pay" in toolonce("calls", "--state", "queued").out
    assert toolonce("call", limited, "--json").json["limited_by"] == "tool:pay"
    said = toolonce("call", limited).out
    assert "tool:pay (1 run, 1 wait): limit 1, set 0s ago by ann: the bank asks; the code says 5" in said


def test_a_call_that_waits_for_its_tenants_share_of_a_common_limit_is_told_so(
    scene: LiveScene, toolonce: CommandLine
) -> None:
    toolonce("limit", "tenant:*", "1", *ANN)
    scene.start("a", tenant="acme")
    waiting = scene.submit("b", tenant="acme")
    scene.claim(scene.pop() or "")
    rows = {row["target"]: row for row in toolonce("limit", "--json").json["limits"]}
    assert (rows["tenant:acme"]["in_force"], rows["tenant:acme"]["waiting"]) == (1, 1)
    assert toolonce("call", waiting, "--json").json["limited_by"] == "tenant:acme"


def test_metrics_tell_each_limit_by_whose_word_it_is(limited: str, toolonce: CommandLine) -> None:
    said = toolonce("metrics", "--once").out
    for line in (
        'toolonce_limit{by="in_force",target="tool:pay"} 1.0',
        'toolonce_limit{by="people",target="tool:pay"} 1.0',
        'toolonce_limit{by="code",target="tool:pay"} 5.0',
        'toolonce_limited_running{target="tool:pay"} 1.0',
        'toolonce_limited_waiting{target="tool:pay"} 1.0',
    ):
        assert line in said
