"""The audit of a registry, and the recognition of errors before anything was sent."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
import redis
import requests
import urllib3
from redis.backoff import NoBackoff
from redis.retry import Retry

from toolonce.worker import Call, Registry
from toolonce.worker.tools.audit import audit, forbids_parallel_calls, to_json
from toolonce.worker.tools.connection_errors import not_started, nothing_was_sent
from toolonce.worker.tools.errors import NotStarted


def _registry() -> Registry:
    tools = Registry()

    @tools.tool(effect="read")
    def look(path: str) -> None: ...

    @tools.tool
    def blind(path: str) -> None: ...

    @tools.tool(order_by="path")
    def careful(path: str, call: Call) -> None:
        print(call.idempotency_key)

    @tools.tool(concurrency=1, timeout=100, deadline=300)
    def narrow(path: str) -> None: ...

    @narrow.reconcile
    def found(path: str) -> None: ...

    return tools


def test_it_says_what_may_run_in_parallel() -> None:
    verdicts = audit(_registry())

    assert [verdict.parallel_safe for verdict in verdicts] == [True, False, True, True]
    assert forbids_parallel_calls(verdicts)
    assert not forbids_parallel_calls(verdicts[:1])


def test_it_says_which_unknown_calls_nobody_could_clear_up() -> None:
    look, blind, careful, _ = audit(_registry())

    assert blind.is_risky
    assert "neither a reconcile nor a key" in " ".join(finding.text for finding in blind.findings)
    assert not look.is_risky
    assert not careful.is_risky
    assert careful.forwards_key


def test_it_says_what_would_overrun_its_deadline_at_a_fan_out() -> None:
    assert not audit(_registry(), fanout=4)[3].is_risky
    [finding] = audit(_registry(), fanout=5)[3].findings

    assert finding.text == "5 calls of one turn: the last may wait 400 s, past its deadline of 300 s"


def test_it_says_which_schemas_multiply_the_cost_of_validation() -> None:
    """faults 12"""
    tools = Registry()
    again = {"type": "array", "items": {"$ref": "#/$defs/tree"}}

    @tools.tool(effect="read", schema={"properties": {"a": again}, "$defs": {"tree": {"anyOf": [again, again]}}})
    def twice(a: Any) -> None: ...

    @tools.tool(
        effect="read", schema={"properties": {"a": again}, "$defs": {"tree": {"anyOf": [again, {"type": "null"}]}}}
    )
    def once(a: Any) -> None: ...

    found = {verdict.spec.name: verdict.findings[0].text for verdict in audit(tools)}
    assert "(anyOf) that lead back to themselves" in found["twice"]
    assert found["once"] == "nothing to say"


def test_it_is_written_with_flags() -> None:
    rows = json.loads(to_json(audit(_registry())))["tools"]

    assert {row["name"]: row["parallel_safe"] for row in rows} == {
        "look": True, "blind": False, "careful": True, "narrow": True,
    }  # fmt: skip


def _raised(action: Any) -> BaseException:
    with pytest.raises(BaseException) as raised:  # noqa: PT011  any of them is looked at
        action()
    return raised.value


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_a_refused_connection_is_nothing_sent_in_every_client(closed_port: int) -> None:
    errors = [
        _raised(lambda: socket.create_connection(("127.0.0.1", closed_port))),
        _raised(lambda: requests.get(f"http://127.0.0.1:{closed_port}", timeout=2)),
        _raised(lambda: urllib3.request("GET", f"http://127.0.0.1:{closed_port}", retries=False)),
        _raised(lambda: redis.Redis(port=closed_port, retry=Retry(NoBackoff(), 0)).ping()),
    ]

    assert [nothing_was_sent(error) for error in errors] == [True] * 4
    assert isinstance(not_started(errors[0], retry_after=3), NotStarted)


@pytest.mark.parametrize(
    "error",
    [
        requests.ReadTimeout("read timed out"),
        requests.ConnectionError("Connection aborted."),
        redis.ConnectionError("Connection closed by server."),
        redis.TimeoutError("Timeout reading from socket"),
        ConnectionResetError(104, "Connection reset by peer"),
        TimeoutError("timed out"),
        ValueError("connecting to nowhere"),
    ],
    ids=repr,
)
def test_what_may_have_been_sent_is_not_called_unsent(error: Exception) -> None:
    assert not nothing_was_sent(error)
    assert not_started(error) is error


@pytest.mark.parametrize("forwards", [True, False])
def test_it_says_what_running_again_after_a_reconcile_can_do(forwards: bool) -> None:
    """faults 10."""
    tools = Registry()

    @tools.tool(rerun_absent=True)
    def book(call: Call) -> None:
        print(call.idempotency_key if forwards else call.attempt)

    (alone,) = audit(tools)
    book.reconcile(lambda: None)
    (verdict,) = audit(tools)

    assert "has no reconcile" in alone.findings[-1].text
    assert "second effect" in verdict.findings[-1].text


def test_it_says_whether_the_last_call_of_a_turn_starts_before_its_deadline_at_its_rate() -> None:
    tools = Registry()
    tools.tool(name="slow", effect="read", rate="1/min", deadline=300)(lambda: None)
    tools.tool(name="fast", effect="read", rate="100/min", deadline=300)(lambda: None)

    slow, fast = audit(tools, fanout=7)

    assert "the last may wait 360 s, past its deadline of 300 s" in slow.findings[0].text
    assert not fast.is_risky


def test_it_says_what_a_unique_key_means() -> None:
    tools = Registry()

    @tools.tool(unique_by="order", unique_in="tenant", unique_for="1h")
    def bill(order: int) -> None: ...

    @tools.tool(effect="read", unique_by="order")
    def look(order: int) -> None: ...

    said = {
        finding.tool: finding.text
        for verdict in audit(tools)
        for finding in verdict.findings
        if "order" in finding.text
    }
    assert said["bill"].endswith("a failed call keeps it, but for ToolError(effect='none')")
    assert "one effect for each order of a tenant, for 3600 s after it" in said["bill"]
    assert "with an old result" in said["look"]
