"""How many calls may wait: of a queue and of a tenant; refused in words that name the option."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.store.scene import spec
from tests.support.stream.harness import LOOK, Bench, calls
from tests.support.stream.inbox import Inbox
from toolonce.store.model.errors import StoreFull, StoreMisuse
from toolonce.store.operations.runs import NotRun
from toolonce.stream.harness.async_client import AsyncClient
from toolonce.stream.harness.client import Client
from toolonce.stream.harness.queue_limits import DEFAULTS, complete
from toolonce.stream.inbox import consumer as inbox
from toolonce.stream.inbox.consumer import Consumer


@pytest.fixture
def toolonce(bench: Bench, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys, ["--redis", bench.url, "--namespace", bench.namespace])


def test_one_tenant_cannot_fill_the_queue_for_all(bench: Bench) -> None:
    """faults 16"""
    greedy = bench.another_client("greedy/talk", tenant_queue_limit=3)
    modest = bench.another_client("modest/talk", tenant_queue_limit=3)
    greedy.submit_calls(calls(1, 2, 3), turn_id="t1")
    with pytest.raises(StoreFull, match="tenant 'greedy' has 3 queued calls, its limit"):
        greedy.submit_calls(calls(4), turn_id="t2")
    modest.submit_calls(calls(1), turn_id="t1")
    bench.run_next()
    greedy.submit_calls(calls(4), turn_id="t2")
    assert bench.admitted == 5


@pytest.mark.parametrize("wait", ["for a slot", "for another attempt"])
def test_a_tenants_calls_count_wherever_they_wait(bench: Bench, wait: str) -> None:
    """faults 16"""
    client = bench.another_client("acme/talk", tenant_queue_limit=1)
    if wait == "for a slot":
        bench.scene.limit("tenant:acme", 0)
        client.submit_calls(calls(1), turn_id="t1")
        job = bench.scene.pop()
        assert job
        assert bench.scene.claim(job) == NotRun("parked", "tenant:acme")
    else:
        client.submit_calls(calls(1), turn_id="t1")
        bench.scene.retry_later(bench.scene.take(), delay_ms=60_000)
    assert not bench.scene.queued_jobs()
    with pytest.raises(StoreFull, match="tenant 'acme'"):
        client.submit_calls(calls(2), turn_id="t2")


def test_what_is_stored_is_answered_at_the_limit(bench: Bench) -> None:
    client = bench.another_client("acme/talk", tenant_queue_limit=1)
    (first,) = client.submit_calls(calls(1), turn_id="t1").outcomes
    assert client.submit_calls(calls(1), turn_id="t1").outcomes[0].key == first.key


def test_a_full_tenants_entries_wait_and_others_are_taken(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """faults 16"""
    monkeypatch.setattr(inbox, "RETRY_MS", 0)
    consumer = Consumer(bench.store.connection, name="one", tenant_queue_limit=1)
    greedy, modest = Inbox(bench, "greedy"), Inbox(bench, "modest")
    entries = [greedy.add(turn=str(n), calls=[{"name": "look"}]) for n in range(2)]
    other = modest.add(turn="1", calls=[{"name": "look"}])
    consumer.step(0.01)
    assert [len(greedy.answers(entry)) for entry in entries] == [1, 0]
    assert len(modest.answers(other)) == 1
    bench.run_all([1, 2])
    consumer.step(0.01)
    assert len(greedy.answers(entries[1])) == 1
    consumer.close()


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_refusal_names_an_option_that_exists_everywhere(
    bench: Bench, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """faults 16: it said "raise the limit", and there was no option."""
    monkeypatch.setenv(f"TOOLONCE_{name.upper()}", "1")
    client = bench.another_client("acme/talk")
    client.submit_calls(calls(1), turn_id="t1")
    with pytest.raises(StoreFull) as refused:
        client.submit_calls(calls(2), turn_id="t2")

    named = re.search(r"raise (\w+)= \(--([\w-]+), (\w+)\)", str(refused.value))
    assert named
    assert named.groups() == (name, name.replace("_", "-"), f"TOOLONCE_{name.upper()}")
    for command in ("submit", "consume", "up"):
        assert f"--{named[2]}" in toolonce(command, "--help", place=[]).out
    option: Any = {named[1]: 2}
    bench.another_client("acme/talk", **option).submit_calls(calls(2), turn_id="t2")


def test_the_command_line_obeys_its_option(bench: Bench, toolonce: CommandLine, tmp_path: Any) -> None:
    """faults 16"""
    bench.scene.publish(LOOK, spec("pay"))
    bench.client.submit_calls(calls(1), turn_id="t1")
    asked = tmp_path / "calls.json"
    asked.write_text(json.dumps([{"name": "pay", "arguments": {"n": 2}}]))
    words = ("submit", "--scope", "tenant-1/talk-2", "--turn-id", "t2", "--wait", "0", "--calls", str(asked))
    refused = toolonce(*words, "--tenant-queue-limit", "1")
    assert (refused.code, "tenant 'tenant-1' has 1 queued calls" in refused.err) == (1, True)
    assert toolonce(*words, "--tenant-queue-limit", "no").code == 2
    assert toolonce(*words, "--tenant-queue-limit", "-1").code == 2
    assert toolonce(*words, "--tenant-queue-limit", "2").code == 0


@pytest.mark.parametrize("wrong", [-1, 1.5, "many", True, float("nan")])
def test_a_limit_that_is_no_number_of_calls_is_a_start_up_error(wrong: Any) -> None:
    with pytest.raises(StoreMisuse, match="use a number of calls, or 0"):
        complete({"queue_limit": wrong})
    with pytest.raises(StoreMisuse, match="TOOLONCE_QUEUE_LIMIT"):
        complete({}, {"TOOLONCE_QUEUE_LIMIT": "-1"})


def test_arguments_go_before_the_environment_and_zero_is_no_limit() -> None:
    environment = {"TOOLONCE_QUEUE_LIMIT": "7", "TOOLONCE_TENANT_QUEUE_LIMIT": ""}
    assert complete({}, environment) == {**DEFAULTS, "queue_limit": 7}
    assert complete({"queue_limit": 0}, environment) == {**DEFAULTS, "queue_limit": 0}


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_an_option_that_there_is_not_is_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match="queue_limits"):
        kind("redis://127.0.0.1:1", scope="s", queue_limits=3)
