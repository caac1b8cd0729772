"""Queue limits that people set: they win over those of harnesses, in both directions, and say whose word it is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.store.scene import spec
from tests.support.stream.harness import Bench, calls
from toolonce.store.model.errors import StoreFull
from toolonce.store.operations.controls import queue_limit
from toolonce.store.operations.operators import Actor
from toolonce.store.operations.runs import NotRun

ANN = Actor("ann", "one customer must not fill it")
FLAGS = "queue_limits"


@pytest.fixture
def toolonce(bench: Bench, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys, ["--redis", bench.url, "--namespace", bench.namespace])


def limit(bench: Bench, target: str, most: int | None) -> None:
    bench.store.connection.run(queue_limit(bench.store.space, target, most, ANN))


@pytest.mark.parametrize("target", ["tenant:acme", "tenant:*", "queue:default"])
def test_the_number_of_people_wins_over_a_larger_one_of_the_harness(bench: Bench, target: str) -> None:
    client = bench.another_client("acme/talk", tenant_queue_limit=0, queue_limit=0)
    limit(bench, target, 2)
    client.submit_calls(calls(1, 2), turn_id="t1")
    with pytest.raises(StoreFull, match=r"2 (queued )?calls, its limit by people: start workers, or toolonce limit "):
        client.submit_calls(calls(3), turn_id="t2")
    limit(bench, target, None)
    client.submit_calls(calls(3), turn_id="t2")


@pytest.mark.parametrize(("target", "given"), [("tenant:acme", "tenant_queue_limit"), ("queue:default", "queue_limit")])
def test_the_number_of_people_wins_over_a_smaller_one_of_the_harness(bench: Bench, target: str, given: str) -> None:
    option: Any = {given: 1}
    client = bench.another_client("acme/talk", **option)
    limit(bench, target, 2)
    client.submit_calls(calls(1), turn_id="t1")
    client.submit_calls(calls(2), turn_id="t2")
    with pytest.raises(StoreFull, match="its limit by people"):
        client.submit_calls(calls(3), turn_id="t3")


def test_a_tenant_with_a_number_of_its_own_has_that_and_others_the_common_one(bench: Bench) -> None:
    limit(bench, "tenant:*", 1)
    limit(bench, "tenant:acme", 3)
    acme, other = bench.another_client("acme/talk"), bench.another_client("umbrella/talk")
    acme.submit_calls(calls(1, 2, 3), turn_id="t1")
    other.submit_calls(calls(1), turn_id="t1")
    with pytest.raises(StoreFull, match="tenant 'acme' has 3 queued calls"):
        acme.submit_calls(calls(4), turn_id="t2")
    with pytest.raises(StoreFull, match="tenant 'umbrella' has 1 queued calls"):
        other.submit_calls(calls(4), turn_id="t2")


def test_parked_calls_of_a_paused_tool_count_for_their_tenants_limit(bench: Bench) -> None:
    client = bench.another_client("acme/talk")
    limit(bench, "tenant:acme", 1)
    bench.scene.pause("tool:pay")
    client.submit_calls(calls(1), turn_id="t1")
    assert bench.scene.claim(bench.scene.pop() or "") == NotRun("parked", "pause tool:pay")
    with pytest.raises(StoreFull, match="tenant 'acme' has 1 queued calls"):
        client.submit_calls(calls(2), turn_id="t2")


def test_what_is_stored_is_answered_at_the_limit_of_people(bench: Bench) -> None:
    client = bench.another_client("acme/talk")
    limit(bench, "tenant:acme", 1)
    (first,) = client.submit_calls(calls(1), turn_id="t1").outcomes
    assert client.submit_calls(calls(1), turn_id="t1").outcomes[0].key == first.key


def test_admission_looks_for_such_limits_only_while_there_are_any(bench: Bench) -> None:
    def flag() -> Any:
        return bench.store.redis.hget(f"{bench.store.space.root}flags", FLAGS)

    for most in (5, 5, 6):  # set, sent twice, changed
        limit(bench, "tenant:acme", most)
    limit(bench, "queue:default", 7)
    assert flag() == "2"
    for target in ("tenant:acme", "tenant:acme", "queue:default"):
        limit(bench, target, None)
    assert flag() is None


def test_the_refusal_names_a_command_that_lifts_it(bench: Bench, toolonce: CommandLine) -> None:
    client = bench.another_client("acme and sons/talk")
    assert toolonce("limit", "tenant:acme and sons", "1", "--queued", "--actor", "ann").code == 0
    client.submit_calls(calls(1), turn_id="t1")
    with pytest.raises(StoreFull, match="toolonce limit 'tenant:acme and sons' NUMBER --queued"):
        client.submit_calls(calls(2), turn_id="t2")
    toolonce("limit", "tenant:acme and sons", "2", "--queued")
    client.submit_calls(calls(2), turn_id="t2")


def test_the_command_shows_each_number_with_its_author_and_how_many_wait(bench: Bench, toolonce: CommandLine) -> None:
    bench.scene.publish(spec("look", "read", concurrency=3))
    bench.another_client("acme/talk").submit_calls(calls(1, 2), turn_id="t1")
    said = toolonce("limit", "tenant:acme", "9", "--queued", "--actor", "ann", "--reason", "too many", "--json")
    (row,) = said.json["limits"]
    shown = {name: row[name] for name in ("kind", "target", "in_force", "code", "waiting")}
    assert shown == {"kind": "queue-limit", "target": "tenant:acme", "in_force": 9, "code": None, "waiting": 2}
    assert (row["people"]["by"], row["people"]["reason"]) == ("ann", "too many")
    assert [one["kind"] for one in toolonce("limit", "--json").json["limits"]] == ["limit", "queue-limit"]
    assert "queue-limit" in toolonce("stats").out
    assert 'toolonce_queue_limit{target="tenant:acme"} 9.0' in toolonce("metrics", "--once").out
    found = [one for one in toolonce("doctor", "--json").json["findings"] if one["code"] == "set_by_people"]
    assert [one["mend"] for one in found] == ["toolonce limit --queued tenant:acme --clear"]
    assert toolonce("limit", "--queued", "tenant:acme", "--clear").code == 0
    assert toolonce("limit", "--queued", "--json").json["limits"] == []


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["tool:pay", "5"], "a queue-limit is for queue:NAME, tenant:NAME, or tenant:"),
        (["queue:*", "5"], "a queue-limit is for"),
        (["tenant:acme", "0"], "from 1 to 999999"),
        (["--clear"], "toolonce limit --queued tenant:acme --clear"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_way_out(toolonce: CommandLine, words: list[str], hint: str) -> None:
    said = toolonce("limit", "--queued", *words)
    assert said.code == 2
    assert hint in said.err
