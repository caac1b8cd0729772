"""What follows when an entry into a handler has ended: the whole table, without a server."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tenacity import stop_after_delay, wait_exponential, wait_fixed

from toolonce.store.model.specs import Effect
from toolonce.store.model.states import State
from toolonce.store.operations.runs import Run
from toolonce.worker import CancelRequested, LeaseLost, NotStarted, Retry, ToolError
from toolonce.worker.execution.policy import (
    Circumstances,
    Interrupt,
    Nothing,
    RetryLater,
    Settle,
    decide,
    late,
    not_started_wait_s,
)
from toolonce.worker.tools.handler_result import End, Kind, classify

FIXED = Retry(attempts=3, wait=wait_fixed(1))


def run(effect: str = "mutating", *, begins: bool = False, attempt: int = 1) -> Run:
    return Run(
        "c", 1, "t", "w", "tool", "1", "function", "{}", "k", "s", "", "turn", None, 0, Effect(effect), begins,
        attempt, 3, None, False, False,
    )  # fmt: skip


def verdict(move: Any) -> str:
    """A move in one word."""
    match move:
        case Settle(ending):
            return ending.state.value
        case RetryLater():
            return "again"
        case Interrupt():
            return "interrupt"
        case Nothing():
            return "nothing"
    raise AssertionError(move)


@pytest.mark.parametrize(
    ("kind", "read", "idempotent", "mutating", "before_begin", "after_begin"),
    [
        (Kind.RETURNED, "succeeded", "succeeded", "succeeded", "succeeded", "succeeded"),
        (Kind.TOOL_ERROR, "failed", "failed", "failed", "failed", "failed"),
        (Kind.NOT_STARTED, "again", "again", "again", "again", "again"),
        (Kind.RAISED, "again", "again", "unknown", "failed", "unknown"),
        (Kind.CANCELLED, "failed", "failed", "unknown", "failed", "unknown"),
        (Kind.LEASE_LOST, "nothing", "nothing", "nothing", "nothing", "nothing"),
        (Kind.TIMED_OUT, "again", "again", "interrupt", "interrupt", "interrupt"),
        (Kind.DIED, "again", "again", "interrupt", "interrupt", "interrupt"),
    ],
)
def test_the_table(kind: Kind, read: str, idempotent: str, mutating: str, before_begin: str, after_begin: str) -> None:
    end = End(kind, result="1", code="x", message="m")

    assert verdict(decide(run("read"), end, FIXED, Circumstances())) == read
    assert verdict(decide(run("idempotent"), end, FIXED, Circumstances())) == idempotent
    assert verdict(decide(run(), end, FIXED, Circumstances())) == mutating
    assert verdict(decide(run(begins=True), end, FIXED, Circumstances())) == before_begin
    assert verdict(decide(run(begins=True), end, FIXED, Circumstances(begun=True))) == after_begin


@given(st.sampled_from(Kind), st.integers(1, 5), st.booleans(), st.none() | st.floats(0, 100))
def test_a_mutating_call_runs_again_only_after_it_said_that_nothing_started(
    kind: Kind, attempt: int, begun: bool, left: float | None
) -> None:
    """G1."""
    now = Circumstances(begun=begun, left_s=left)

    move = decide(run(attempt=attempt), End(kind), FIXED, now)

    assert not isinstance(move, RetryLater) or kind is Kind.NOT_STARTED


def test_attempts_run_out() -> None:
    move = decide(run("read", attempt=3), End(Kind.RAISED, message="last"), FIXED, Circumstances())

    assert isinstance(move, Settle)
    assert move.ending.failure
    assert move.ending.failure.code == "attempts_exhausted"


def test_no_retry_is_planned_past_the_deadline() -> None:
    move = decide(run("read"), End(Kind.RAISED), FIXED, Circumstances(left_s=0.9))

    assert isinstance(move, Settle)
    assert move.ending.failure
    assert move.ending.failure.code == "deadline_exceeded"


@pytest.mark.parametrize(("asked", "wait_ms"), [(7.5, 7500), (0.0, 100), (-1.0, 100), (0.01, 100)])
def test_a_call_that_has_not_started_waits_as_long_as_was_asked_and_a_little_at_least(
    asked: float, wait_ms: int
) -> None:
    """faults 16."""
    move = decide(run("read"), End(Kind.NOT_STARTED, retry_after=asked), FIXED, Circumstances(left_s=600))

    assert isinstance(move, RetryLater)
    assert (move.delay_ms, move.counts) == (wait_ms, False)


def test_without_a_wait_asked_for_it_grows_from_a_second_to_a_minute() -> None:
    """faults 16: the tool's own waits are for attempts that count."""
    for times, wait_s in ((0, 1), (1, 2), (5, 32), (6, 60), (5_000, 60)):
        seen = {not_started_wait_s(times, None) for _ in range(20)}
        assert all(0.75 * wait_s <= wait <= 1.25 * wait_s for wait in seen)
        assert len(seen) > 1


def test_attempts_that_have_not_started_are_bounded_by_the_deadline_alone() -> None:
    """faults 16."""
    end = End(Kind.NOT_STARTED, message="busy", retry_after=1)
    again = decide(run(attempt=500), end, FIXED, Circumstances(left_s=600))
    late = decide(run(attempt=500), end, FIXED, Circumstances(left_s=0.9))
    without = decide(run(attempt=3), end, FIXED, Circumstances(left_s=None))

    assert isinstance(again, RetryLater)
    assert isinstance(late, Settle)
    assert late.ending.failure
    assert late.ending.failure.code == "deadline_exceeded"
    assert isinstance(without, Settle)
    assert without.ending.failure
    assert without.ending.failure.code == "attempts_exhausted"


@pytest.mark.parametrize(
    ("given", "heard"),
    [(5, 5.0), ("5", 5.0), (0.5, 0.5), (float("nan"), None), (float("inf"), None), ("soon", None), (10**400, None)],
)
def test_a_wait_that_is_no_number_is_none_that_was_asked_for(given: Any, heard: float | None) -> None:
    """faults 24: it comes out of a handler, often from a header, and must not end the call in doubt."""
    assert classify(NotStarted("busy", retry_after=given)).retry_after == heard


def test_waits_grow_as_tenacity_says_and_nothing_sleeps() -> None:
    retry = Retry(attempts=9, wait=wait_exponential(multiplier=1, max=60))

    assert [retry.delay_ms(attempt, waited_s=0) for attempt in (1, 2, 3)] == [1000, 2000, 4000]


def test_a_stop_sees_the_time_since_the_call_was_queued() -> None:
    retry = Retry(wait=wait_fixed(0), stop=stop_after_delay(10))

    assert retry.delay_ms(1, waited_s=9) == 0
    assert retry.delay_ms(1, waited_s=11) is None


@pytest.mark.parametrize("kind", Kind)
def test_a_late_word_is_a_value_or_a_failure_of_its_own_and_nothing_else(kind: Kind) -> None:
    ending = late(run(), End(kind, result="0"))

    expected = {Kind.RETURNED: State.SUCCEEDED, Kind.TOOL_ERROR: State.FAILED}.get(kind)
    assert (ending.state if ending else None) is expected


class GatewayBusy(Exception):
    """A tool's own word for "nothing happened"."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ToolError("no"), Kind.TOOL_ERROR),
        (NotStarted(), Kind.NOT_STARTED),
        (GatewayBusy("busy"), Kind.NOT_STARTED),
        (CancelRequested(), Kind.CANCELLED),
        (LeaseLost(), Kind.LEASE_LOST),
        (ValueError("x"), Kind.RAISED),
        (SystemExit(0), Kind.RAISED),
        (KeyboardInterrupt(), Kind.RAISED),
        (asyncio.CancelledError(), Kind.RAISED),
        (StopIteration(), Kind.RAISED),
        (ExceptionGroup("many", [ToolError("one")]), Kind.RAISED),
    ],
    ids=repr,
)
def test_every_exception_means_something(error: BaseException, kind: Kind) -> None:
    assert classify(error, (GatewayBusy,)).kind is kind


def test_words_of_an_exception_are_one_line_of_bounded_length() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert classify(Odd()).message == "Odd: (its text cannot be read)"
    assert "\n" not in classify(ValueError("a\nb")).message
    assert len(classify(ValueError("x" * 100_000)).message) < 3_000


def test_an_end_crosses_a_process_border_unchanged() -> None:
    end = classify(ToolError("no", code="gone", details={"path": ["a"], "odd": object}))

    assert End.from_json(end.to_json()) == end


@pytest.mark.parametrize(
    "error",
    [ToolError("m", code="c", details={"a": 1}, effect="none"), NotStarted("m", retry_after=2)],
    ids=["failed", "not started"],
)
def test_errors_of_handlers_survive_pickling(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), copy.args, vars(copy)) == (type(error), error.args, vars(error))


@pytest.mark.parametrize("kind", [Kind.RAISED, Kind.TIMED_OUT, Kind.DIED, Kind.CANCELLED])
@pytest.mark.parametrize("effect", ["read", "idempotent"])
def test_a_stop_between_attempts_does_not_claim_that_nothing_happened(kind: Kind, effect: str) -> None:
    """G3: an idempotent attempt that ended without an outcome may have had its effect."""
    move = decide(run(effect), End(kind, message="gone"), FIXED, Circumstances(cancel_requested=True))

    assert isinstance(move, Settle)
    assert move.ending.failure
    assert "before its effect" not in move.ending.failure.message


@pytest.mark.parametrize(
    ("kind", "effect", "begins", "told"),
    [
        (Kind.NOT_STARTED, "mutating", False, "none"),
        (Kind.NOT_STARTED, "read", False, "none"),
        (Kind.RAISED, "read", False, ""),
        (Kind.RAISED, "mutating", True, "none"),
        (Kind.CANCELLED, "mutating", True, "none"),
        (Kind.CANCELLED, "read", False, ""),
        (Kind.TOOL_ERROR, "mutating", True, ""),
    ],
)
def test_a_failure_says_that_there_was_no_effect_where_that_is_certain(
    kind: Kind, effect: str, begins: bool, told: str
) -> None:
    """Faults 28: also not where someone let a call run again whose first attempt may have had its effect."""
    ran_before = replace(run(effect, begins=begins, attempt=2), ran_before=True)
    for attempt, expected in ((run(effect, begins=begins), told), (ran_before, "")):
        move = decide(replace(attempt, attempt_limit=1), End(kind, code="x", message="m"), FIXED, Circumstances())
        assert isinstance(move, Settle)
        assert move.ending.failure
        assert move.ending.failure.effect == expected


@pytest.mark.parametrize("effect", ["read", "idempotent", "mutating"])
def test_a_tool_may_say_that_its_attempt_had_no_effect_and_speaks_for_no_attempt_before(effect: str) -> None:
    end = classify(ToolError("no such account", effect="none"))
    first = run(effect)
    second = replace(first, attempt=2, ran_before=True)
    after_a_refused_connection = replace(first, attempt=2, not_started=1)
    for attempt, expected in ((first, "none"), (second, ""), (after_a_refused_connection, "none")):
        move = decide(attempt, end, FIXED, Circumstances())
        word = late(attempt, end)
        assert isinstance(move, Settle)
        assert word
        assert [ending.failure and ending.failure.effect for ending in (move.ending, word)] == [expected, expected]


def test_a_word_that_toolonce_does_not_know_says_nothing_about_the_effect() -> None:
    odd: Any = "some"
    assert classify(ToolError("no", effect=odd)).effect == ""
