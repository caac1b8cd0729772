"""The model is told what happened, whether anything ran, and what to do; never more than is known."""

from __future__ import annotations

from typing import Any

import pytest

from toolonce.store.model.outcomes import Failure, Outcome
from toolonce.store.model.parts import FilePart, ImagePart, Parts, TextPart
from toolonce.store.model.states import State
from toolonce.store.schema.validation import validate
from toolonce.stream.replies.answers import for_model

REASONS = (
    "invalid_json", "not_an_object", "duplicate_key", "non_finite", "lone_surrogate", "too_deep", "too_large",
    "too_costly",
)  # fmt: skip


def told(state: State | None, code: str = "", message: str = "", **fields: Any) -> str:
    failure = Failure(code, message, fields.pop("details", {})) if code else None
    return for_model(Outcome("k", "k-f", "pay", "id", 0, state, failure=failure, **fields))


def test_an_unknown_outcome_forbids_claiming_success_and_calling_again() -> None:
    text = told(State.UNKNOWN, "outcome_unknown", "its worker was lost")

    assert text.startswith("Error [unknown]")
    assert "Do not say that it succeeded, and do not say that it failed" in text
    assert "Do not call it again" in text
    assert "Nothing was executed" not in text


def test_invalid_arguments_name_each_place_and_what_was_expected_there() -> None:
    schema = {"type": "object", "properties": {"lines": {"items": {"type": "integer"}}}, "required": ["to"]}
    failure = validate(schema, {"lines": [1, "x"]})
    assert failure is not None

    text = told(State.REFUSED, failure.code, failure.message, details=failure.details)

    assert "At $.lines[1]: expected integer, got string" in text
    assert "At $: missing to" in text
    assert "Correct the arguments" in text


def test_a_paused_call_is_told_as_waiting_for_people_and_not_as_failed() -> None:
    text = told(State.QUEUED, marks={"reason": "paused"})

    assert text.startswith("Pending [queued]: `pay` is paused by the people who run it. It waits until they resume it")
    assert "Do not call it again" in text
    assert told(State.RUNNING, marks={"reason": "paused"}) == told(State.RUNNING)


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (State.REFUSED, "unknown_tool"),
        (State.REFUSED, "denied"),
        (State.REFUSED, "predecessor"),
        (State.REFUSED, "said_no"),
        (State.CANCELLED, "cancelled"),
        (State.EXPIRED, "expired"),
        (None, "invalid_arguments"),
        *((State.REFUSED, reason) for reason in REASONS),
    ],
)
def test_what_never_ran_says_so(state: State | None, code: str) -> None:
    text = told(state, code)

    assert text.startswith(f"Error [{code}]: ")
    assert "Nothing was executed." in text
    assert "`pay`" in text


@pytest.mark.parametrize("state", [State.REFUSED, State.CANCELLED, State.EXPIRED])
def test_what_ended_after_an_attempt_never_says_that_nothing_ran(state: State) -> None:
    """G3: it waited for another attempt; the one before may have had its effect."""
    text = told(state, str(state), "a stop was asked for; attempts made before: 1", attempt=1)

    assert text.startswith(f"Error [{state}]: ")
    assert "may have had its effect" in text
    assert "do not say that nothing was done" in text
    assert "Nothing was executed" not in text


@pytest.mark.parametrize(
    "code", ["tool_error", "attempts_exhausted", "deadline_exceeded", "interrupted", *REASONS, "denied", "unknown_tool"]
)
def test_a_failure_gives_its_reason_and_never_says_that_nothing_ran(code: str) -> None:
    text = told(State.FAILED, code, "card declined")

    assert text.startswith(f"Error [{code}]: ")
    assert "Reason: card declined" in text
    assert "Nothing was executed" not in text


@pytest.mark.parametrize("errors", ["text", 5, [], ["a"], [{}], [{"path": "$", "expected": "x"}, 1], {"path": "$"}])
def test_a_tools_own_details_are_never_mistaken_for_places(errors: Any) -> None:
    text = told(State.FAILED, "tool_error", "card declined", details={"errors": errors})

    assert "Reason: card declined" in text
    assert "At $" not in text


@pytest.mark.parametrize("reason", ["", "approval", "order", "no_worker", "duplicate", "store_went_back"])
def test_a_held_call_is_not_finished_and_must_not_be_repeated(reason: str) -> None:
    text = told(State.HELD, marks={"reason": reason})

    assert text.startswith("Pending [held]")
    assert "Do not call it again" in text
    assert "do not say that it succeeded or that it failed" in text


def test_a_running_call_that_was_asked_to_stop_is_told_so_and_is_not_over() -> None:
    """O7-02."""
    text = told(State.RUNNING, marks={"cancel_requested": True})

    assert text.startswith("Pending [running]: `pay` was asked to stop; how it ends is not known yet.")
    assert "Do not call it again" in text


def test_a_conflict_says_that_the_earlier_call_stands() -> None:
    text = told(State.SUCCEEDED, conflict=True, value="the other call's value")

    assert text.startswith("Error [conflict]")
    assert "Nothing was executed." in text
    assert "the other call's value" not in text


@pytest.mark.parametrize(
    ("value", "text"), [("a b", "a b"), ("", ""), (None, "null"), ({"n": 2**64}, '{"n":18446744073709551616}')]
)
def test_a_value_is_told_as_it_is(value: Any, text: str) -> None:
    assert told(State.SUCCEEDED, value=value) == text


@pytest.mark.parametrize(
    ("marks", "note"),
    [
        ({"truncated": True, "size": 70_000_000}, "its result of 70000000 bytes was too large to keep whole"),
        ({"lossy": True}, "was not plain JSON"),
        ({"forgotten": True}, "no longer kept"),
    ],
)
def test_a_value_that_is_not_whole_is_still_told_as_a_success(marks: dict[str, Any], note: str) -> None:
    text = told(State.SUCCEEDED, value=None, marks=marks)

    assert "the call succeeded" in text
    assert note in text
    assert ("null" in text) == ("forgotten" not in marks)


def test_media_is_named_where_only_text_can_go() -> None:
    parts = Parts(
        (
            TextPart("see"),
            ImagePart("image/png", url="https://e.test/a.png"),
            FilePart.from_bytes("text/csv", b"abc", name="t.csv"),
        )
    )

    assert told(State.SUCCEEDED, value=parts.to_json()) == (
        "see\n[image (image/png) at https://e.test/a.png]\n[file t.csv (text/csv) of 3 bytes, not shown here]"
    )
