"""How handlers end, and what becomes of their calls, in a worker process on a real server."""

from __future__ import annotations

from typing import Any

import pytest
from tenacity import wait_fixed

from tests.support.processes.tools_under_test import effect
from tests.support.processes.workers import Site
from toolonce.store.model.states import State
from toolonce.worker import Call, NotStarted, Registry, Retry

FALSY: list[Any] = [0, False, "", [], {}, None]


def test_a_value_is_stored_and_replayed(busy_site: Site) -> None:
    key = busy_site.submit("put", what="value", turn_id="value")

    busy_site.wait_for(key, State.SUCCEEDED)

    again = busy_site.submit("put", what="value", turn_id="value")
    outcome = busy_site.outcome("value")
    assert again == key
    assert outcome.value == "value"
    assert busy_site.ledger.count("put value") == 1


@pytest.mark.parametrize("value", FALSY, ids=repr)
def test_falsy_results_are_results_and_replay_unchanged(busy_site: Site, value: Any) -> None:
    turn = f"falsy-{value!r}"
    key = busy_site.submit("echo", value=value, turn_id=turn)

    busy_site.wait_for(key, State.SUCCEEDED)

    replayed = busy_site.submit_outcomes([("echo", {"value": value})], turn_id=turn)[0]
    assert replayed.replayed
    assert type(replayed.value) is type(value)
    assert replayed.value == value


def test_integers_of_nineteen_digits_and_more_arrive_exact(busy_site: Site) -> None:
    value = [9007199254740993, 1234567890123456789, -(2**80)]
    key = busy_site.submit("echo", value=value, turn_id="digits")

    busy_site.wait_for(key, State.SUCCEEDED)

    assert busy_site.outcome("digits").value == value


def test_a_tool_error_is_the_answer_and_is_not_run_again(busy_site: Site) -> None:
    key = busy_site.submit("fail", message="no such customer")

    record = busy_site.wait_for(key, State.FAILED)

    assert record.failure
    assert (record.failure.code, record.failure.message) == ("tool_error", "no such customer")
    assert record.fields.attempt == 1


def test_an_unclear_end_of_a_mutating_tool_is_unknown_and_is_not_run_again(busy_site: Site) -> None:
    key = busy_site.submit("crash", message="unclear")

    record = busy_site.wait_for(key, State.UNKNOWN)

    assert record.failure
    assert record.failure.code == "outcome_unknown"
    assert busy_site.ledger.count("put unclear") == 1


def test_what_had_not_started_runs_again_even_when_it_mutates(busy_site: Site) -> None:
    key = busy_site.submit("refuse_first", what="refused")

    record = busy_site.wait_for(key, State.SUCCEEDED)

    assert record.fields.attempt == 2
    assert busy_site.ledger.count("put refused") == 1


def test_a_read_that_fails_is_retried_until_it_succeeds(busy_site: Site) -> None:
    key = busy_site.submit("fail_until", what="third", attempt=3)

    record = busy_site.wait_for(key, State.SUCCEEDED)

    assert record.fields.attempt == 3
    assert busy_site.ledger.count("try third") == 3


def test_a_read_that_keeps_failing_is_given_up_with_its_last_words(busy_site: Site) -> None:
    key = busy_site.submit("fail_until", what="never", attempt=9)

    record = busy_site.wait_for(key, State.FAILED)

    assert record.failure
    assert record.failure.code == "attempts_exhausted"
    assert "RuntimeError: not yet" in record.failure.message
    assert busy_site.ledger.count("try never") == 3


def test_one_failing_sibling_takes_nothing_from_the_others(busy_site: Site) -> None:
    """O6-03."""
    keys = busy_site.submit_all(
        [("put", {"what": "first"}), ("crash", {"message": "second"}), ("put", {"what": "third"})]
    )

    states = [busy_site.wait_for(key, State.SUCCEEDED, State.UNKNOWN).state for key in keys]

    assert states == [State.SUCCEEDED, State.UNKNOWN, State.SUCCEEDED]
    assert busy_site.ledger.count("put first") == busy_site.ledger.count("put third") == 1


def test_an_overrun_thread_makes_a_mutating_call_unknown_and_its_late_word_still_settles_it(busy_site: Site) -> None:
    key = busy_site.submit("overrun", what="late")

    unknown = busy_site.wait_for(key, State.UNKNOWN)
    busy_site.ledger.open_gate("late")
    settled = busy_site.wait_for(key, State.SUCCEEDED)

    assert unknown.failure
    assert "run limit" in unknown.failure.message
    assert settled.fields.result == '"late"'
    assert busy_site.ledger.count("put late") == 1


def test_an_overrun_read_is_tried_again_in_another_thread(busy_site: Site) -> None:
    key = busy_site.submit("overrun_once", what="hang")

    record = busy_site.wait_for(key, State.SUCCEEDED)
    busy_site.ledger.open_gate("hang")

    assert record.fields.attempt == 2


def test_an_overrun_task_is_cancelled_and_its_late_word_still_settles_the_call(busy_site: Site) -> None:
    key = busy_site.submit("overrun_async", what="task")

    busy_site.wait_for(key, State.UNKNOWN)
    busy_site.ledger.open_gate("task")

    assert busy_site.wait_for(key, State.SUCCEEDED).fields.result == '"task"'


def test_begin_is_durable_before_the_effect(busy_site: Site) -> None:
    key = busy_site.submit("put_with_begin", what="begun")

    record = busy_site.wait_for(key, State.SUCCEEDED)

    assert record.fields.begun
    assert [event["op"] for event in record.history] == ["admit", "claim", "begin", "settle"]


def test_no_more_calls_of_a_limited_tool_are_inside_than_allowed(busy_site: Site) -> None:
    """O6-04."""
    keys = busy_site.submit_all([("five_at_most", {"what": number}) for number in range(40)])

    for key in keys:
        busy_site.wait_for(key, State.SUCCEEDED)

    inside = most = 0
    for line in busy_site.ledger.lines():
        inside += line.startswith("in ") - line.startswith("out ")
        most = max(most, inside)
    assert 1 < most <= 5
    assert busy_site.ledger.count("in ") == 40


def test_a_tool_that_is_refused_for_its_rate_uses_up_no_attempts(site: Site) -> None:
    """faults 16: 20 of 60 calls failed within seconds, at a tool that takes five a second."""
    registry = Registry()

    @registry.tool(effect="mutating")
    def limited(n: int, *, call: Call) -> int:
        if call.attempt <= 8:
            raise NotStarted("429 slow down", retry_after=0.1)
        effect(f"done {n}")
        return n

    with site.worker_here(registry, concurrency=8):
        keys = site.submit_all([("limited", {"n": n}) for n in range(60)])
        records = [site.wait_for(key, State.SUCCEEDED, State.FAILED) for key in keys]

    assert {record.state for record in records} == {State.SUCCEEDED}
    assert site.ledger.count("done") == 60
    assert {record.fields.not_started for record in records} == {8}
    for record in records:
        told = [event for event in record.history if event["op"] == "retry_later"]
        assert [event["count"] for event in told] == [8]
        assert [event["op"] for event in record.history] == ["admit", "claim", "retry_later", "claim", "settle"]


def test_attempts_that_count_are_not_used_up_by_those_that_do_not(site: Site) -> None:
    """faults 16."""
    registry = Registry()

    @registry.tool(effect="read", retry=Retry(attempts=2, wait=wait_fixed(0.01)))
    def flaky(*, call: Call) -> str:
        if call.attempt <= 5:
            raise NotStarted("busy", retry_after=0.1)
        effect(f"tried {call.attempt}")
        raise RuntimeError("broken")

    with site.worker_here(registry):
        record = site.wait_for(site.submit("flaky"), State.FAILED)

    assert record.failure
    assert record.failure.code == "attempts_exhausted"
    assert site.ledger.lines("tried") == ["tried 6", "tried 7"]
