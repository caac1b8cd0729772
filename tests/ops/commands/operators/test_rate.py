"""Rates that people set: what the command takes and tells, and where else they are shown."""

from __future__ import annotations

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec
from toolonce.store.operations.runs import NotRun, Run

ANN = ("--actor", "ann", "--reason", "our quota")
SEARCH = spec("search", "read", rate="100/min")


@pytest.fixture
def waiting(scene: LiveScene, toolonce: CommandLine) -> str:
    """The code says 100 a minute, ann says one an hour; one call has started, and one waits, whose key this is."""
    scene.publish(SEARCH)
    assert toolonce("rate", "tool:search", "1/h", *ANN).code == 0
    scene.start("a", of=SEARCH)
    key = scene.submit("b", of=SEARCH)
    claimed = scene.claim(scene.pop() or "")
    assert not isinstance(claimed, Run)
    assert (claimed.why, claimed.detail) == ("parked", "rate:tool:search")
    return key


def test_a_rate_is_set_shown_changed_and_cleared(scene: LiveScene, toolonce: CommandLine) -> None:
    scene.publish(SEARCH)
    (before,) = toolonce("rate", "--json").json["rates"]
    assert (before["kind"], before["in_force"], before["people"], before["code"]) == (
        "rate", "100/min", None, "100/min",
    )  # fmt: skip
    (after,) = toolonce("rate", "tool:search", "5/s", *ANN, "--json").json["rates"]
    assert (after["in_force"], after["code"]) == ("5/s", "100/min")
    assert {name: after["people"][name] for name in ("value", "by", "reason")} == {
        "value": "5/s", "by": "ann", "reason": "our quota",
    }  # fmt: skip
    assert "5/s, 0s ago by ann: our quota" in toolonce("rate").out
    (cleared,) = toolonce("rate", "tool:search", "--clear", "--json").json["rates"]
    assert (cleared["in_force"], cleared["people"]) == ("100/min", None)
    assert toolonce("limit", "--json").json["limits"] == []


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["search", "5/s"], "a rate is for tool:NAME"),
        (["tenant:acme", "5/s"], "a rate is for tool:NAME"),
        (["tool:*", "5/s"], "a rate is for tool:NAME"),
        (["tool:search", "5"], "is no rate: write calls/unit"),
        (["tool:search", "0/s"], "is no rate"),
        (["tool:search", "5/m"], "with s, min, h or d"),
        (["--clear"], "toolonce rate tool:pay --clear"),
        (["tool:search", "5/s", "--clear"], "nothing else"),
        (["tool:search", "--reason", "r"], "toolonce rate tool:pay 100/min --reason R"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_way_out(toolonce: CommandLine, words: list[str], hint: str) -> None:
    said = toolonce("rate", *words)
    assert said.code == 2
    assert hint in said.err


def test_each_view_tells_both_rates_and_who_has_set_the_one_that_counts(waiting: str, toolonce: CommandLine) -> None:
    wanted = {"kind": "rate", "target": "tool:search", "in_force": "1/h", "code": "100/min", "waiting": 1}
    for words in (["stats"], ["workers"], ["call", waiting], ["tools", "list"]):
        (row,) = toolonce(*words, "--json").json["controls"]
        assert {name: row[name] for name in wanted} == wanted, words
        assert (row["people"]["by"], row["people"]["value"]) == ("ann", "1/h")
    for words in (["stats"], ["tools", "list"], ["call", waiting]):
        assert "by ann: our quota" in toolonce(*words).out, words
    finding = next(one for one in toolonce("doctor", "--json").json["findings"] if one["code"] == "set_by_people")
    assert "rate 1/h, set 0s ago by ann: our quota; the code says 100/min; 1 calls wait for it" in finding["what"]
    assert finding["mend"] == "toolonce rate tool:search --clear"


def test_a_call_that_waits_for_its_rate_says_so(waiting: str, toolonce: CommandLine) -> None:
    (row,) = toolonce("calls", "--state", "queued", "--json").json["calls"]
    assert (row["call"], row["limited_by"]) == (waiting, "rate:tool:search")
    assert "limited by rate:tool:search" in toolonce("calls", "--state", "queued").out
    said = toolonce("call", waiting).out
    assert "tool:search (1 wait): rate 1/h, set 0s ago by ann: our quota; the code says 100/min" in said


def test_metrics_tell_each_rate_by_whose_word_it_is(waiting: str, toolonce: CommandLine) -> None:
    said = toolonce("metrics", "--once").out
    assert 'toolonce_rate_per_second{by="people",target="tool:search"} 0.000277' in said
    assert 'toolonce_rate_per_second{by="code",target="tool:search"} 1.666' in said
    assert 'toolonce_limited_waiting{target="rate:tool:search"} 1.0' in said


def test_a_claim_that_waits_for_its_rate_tells_when_the_next_may_start(scene: LiveScene) -> None:
    scene.publish(SEARCH)
    scene.start("a", of=SEARCH)
    scene.submit("b", of=SEARCH)
    claimed = scene.claim(scene.pop() or "")
    assert isinstance(claimed, NotRun)
    assert claimed.due_ms is not None
    assert 0 < claimed.due_ms <= 303


def test_the_doctor_names_the_rate_that_a_slow_queue_waits_for(
    waiting: str, scene: LiveScene, toolonce: CommandLine
) -> None:
    scene.live.redis.zadd(f"{scene.space.root}in:queued", {waiting: 1})
    findings = toolonce("doctor", "--json").json["findings"]
    slow = next(one for one in findings if one["code"] == "slow_queue")
    assert "or raise the rate of tool:search, for which calls wait" in slow["mend"]
