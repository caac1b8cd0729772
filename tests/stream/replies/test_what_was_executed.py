"""Every end that a call can come to, and whether the model is told that nothing was executed: exactly where it is true
(faults 28)."""

from __future__ import annotations

from typing import Any

import pytest

from toolonce.store.model.outcomes import Failure, Outcome
from toolonce.store.model.states import NotStored, State
from toolonce.stream.replies.answers import for_model
from toolonce.stream.replies.user_text import for_user

NOTHING = "Nothing was executed."
REFUSALS = (
    "invalid_arguments", "unknown_tool", "unsealed", "unreadable_arguments", "denied", "predecessor", "too_large",
    "other",
)  # fmt: skip
FAILURES = (
    "tool_error", "exception", "cancelled", "not_entered", "attempts_exhausted", "deadline_exceeded", "interrupted",
    "did_not_happen", "resolved", "purged", "the tool's own", "denied", "invalid_arguments", "conflict",
)  # fmt: skip


def ended(state: State | NotStored | None, code: str = "", **fields: Any) -> Outcome:
    failure = Failure(code, "why", {}, fields.pop("effect", "")) if code else None
    return Outcome("k", "k-f", "pay", "id", 0, state, failure=failure, **fields)


def _ends() -> list[tuple[str, Outcome, bool]]:
    """What it is, the outcome, and whether it is certain that nothing was executed."""
    table: list[tuple[str, Outcome, bool]] = []
    waiting = [(State.REFUSED, code) for code in REFUSALS] + [
        (State.CANCELLED, "cancelled"),
        (State.EXPIRED, "expired"),
    ]
    for state, code in waiting:
        name = f"{state} {code}"
        table += [
            (f"{name}, never tried", ended(state, code), True),
            (f"{name}, tried", ended(state, code, attempt=1), False),
            (f"{name}, tried without an effect", ended(state, code, attempt=2, effect="none"), True),
            (f"{name}, records lost", ended(state, code, marks={"may_have_run": True}), False),
            (f"{name}, both", ended(state, code, attempt=2, effect="none", marks={"may_have_run": True}), False),
        ]
    for code in FAILURES:
        table += [
            (f"failed {code}", ended(State.FAILED, code, attempt=1), False),
            (f"failed {code}, no effect", ended(State.FAILED, code, attempt=1, effect="none"), True),
            (
                f"failed {code}, records lost",
                ended(State.FAILED, code, attempt=1, effect="none", marks={"may_have_run": True}),
                False,
            ),
        ]
    table += [
        ("not admitted", ended(None, "invalid_arguments"), True),
        ("unknown", ended(State.UNKNOWN, "outcome_unknown", attempt=1), False),
        (
            "unknown, claimed without an effect",
            ended(State.UNKNOWN, "outcome_unknown", attempt=1, effect="none"),
            False,
        ),
        ("conflict", ended(NotStored.CONFLICT, "conflict", conflict=True), True),
        *((f"{state}", ended(state, marks={"reason": "order"}), False) for state in (State.HELD, State.QUEUED)),
        ("running", ended(State.RUNNING, attempt=1), False),
        ("stopping", ended(State.RUNNING, attempt=1, marks={"cancel_requested": True}), False),
        ("succeeded", ended(State.SUCCEEDED, attempt=1, value="done"), False),
        ("succeeded, forgotten", ended(State.SUCCEEDED, attempt=1, marks={"forgotten": True}), False),
        ("no word yet", ended(None), False),
    ]
    return table


ENDS = _ends()
NAMES = [name for name, _, _ in ENDS]


@pytest.mark.parametrize(("outcome", "is_true"), [(outcome, is_true) for _, outcome, is_true in ENDS], ids=NAMES)
def test_the_model_is_told_that_nothing_was_executed_exactly_where_it_is_true(outcome: Outcome, is_true: bool) -> None:
    """Faults 28."""
    assert outcome.nothing_ran is is_true
    assert (NOTHING in for_model(outcome)) is is_true
    said_to_the_user = "Nothing was done." in for_user(outcome)
    assert said_to_the_user is (is_true and not outcome.conflict)


@pytest.mark.parametrize("outcome", [outcome for _, outcome, _ in ENDS], ids=NAMES)
def test_no_end_tells_the_model_to_do_what_could_repeat_an_effect_in_doubt(outcome: Outcome) -> None:
    """Faults 28, G3."""
    text = for_model(outcome)
    in_doubt = outcome.state is State.UNKNOWN or outcome.was_tried
    assert not (in_doubt and "Do not call it again" not in text)
    assert not (in_doubt and "Call it again" in text)


@pytest.mark.parametrize("effect", ["none", ""])
def test_a_cancelled_running_call_is_not_to_be_called_again_unasked(effect: str) -> None:
    """Faults 28: no change of the arguments would help."""
    text = for_model(ended(State.FAILED, "cancelled", attempt=1, effect=effect))
    assert "Do not call it again unless you are asked to" in text
    assert "Call it again only with a change" not in text


def conflict(state: State, named_by: str = "turn", **first: Any) -> Outcome:
    details = {"first": {"tool": "reserve", "state": state.value, "attempt": 0} | first, "named_by": named_by}
    return Outcome(
        "k", "k-f", "pay", "id", 0, NotStored.CONFLICT, failure=Failure("conflict", "not run", details), conflict=True
    )


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (conflict(State.SUCCEEDED, attempt=1), "The earlier call: `reserve` succeeded."),
        (conflict(State.RUNNING, attempt=1), "The earlier call: `reserve` is still running"),
        (conflict(State.QUEUED), "The earlier call: `reserve` is waiting for its turn"),
        (conflict(State.HELD, reason="approval"), "The earlier call: `reserve` waits for a person's approval"),
        (conflict(State.FAILED, attempt=1, error={"code": "tool_error", "message": "no seat"}), "Reason: no seat"),
        (conflict(State.REFUSED, error={"code": "denied", "message": "no"}), "The call of `reserve` was denied."),
        (conflict(State.CANCELLED, error={"code": "cancelled", "message": "no"}), "`reserve` was cancelled before"),
        (conflict(State.EXPIRED, error={"code": "expired", "message": "no"}), "`reserve` expired before"),
        (conflict(State.UNKNOWN, attempt=1), "it is not known whether it took effect"),
    ],
)
def test_a_conflict_says_what_became_of_the_first_call(first: Outcome, told: str) -> None:
    """Faults 28."""
    text = for_model(first)
    assert text.startswith("Error [conflict]: This call of `pay` has the identity of an earlier call")
    assert told in text


@pytest.mark.parametrize("state", [State.FAILED, State.REFUSED, State.CANCELLED, State.EXPIRED])
def test_after_a_definite_end_a_conflict_says_that_a_new_identity_is_needed(state: State) -> None:
    """Faults 28."""
    error = {"code": str(state), "message": "it broke"}
    assert "make a new call if it is still wanted, in a new turn." in for_model(conflict(state, error=error))
    by_intent = for_model(conflict(state, "intent", error=error))
    assert "has the intent key of an earlier call" in by_intent
    assert "will never run under its intent key" in by_intent
    assert "under another intent key." in by_intent


@pytest.mark.parametrize(
    "first",
    [
        conflict(State.UNKNOWN, attempt=1),
        conflict(State.EXPIRED, attempt=1, error={"code": "expired", "message": "late"}),
        conflict(State.EXPIRED, may_have_run=True, error={"code": "expired", "message": "late"}),
        conflict(State.FAILED, attempt=1, error={"code": "purged", "message": "given up"}),
    ],
)
def test_a_conflict_with_a_call_in_doubt_does_not_ask_for_a_new_one(first: Outcome) -> None:
    """Faults 28, G3."""
    text = for_model(first)
    assert "Do not call it again" in text
    assert "make a new call" not in text.lower()
    assert text.count(NOTHING) == 1, "said of this call alone"


@pytest.mark.parametrize(
    "details",
    [{}, {"first": None}, {"first": []}, {"first": {"state": "conflict", "tool": "x"}}, {"first": {"tool": 1}}],
)
def test_a_conflict_that_knows_no_more_is_told_all_the_same(details: dict[str, Any]) -> None:
    """Faults 28: as stored by others."""
    outcome = Outcome(
        "k", "k-f", "pay", "id", 0, State.QUEUED, failure=Failure("conflict", "no", details), conflict=True
    )
    assert for_model(outcome).endswith(
        "The earlier call stands. Make a new call if this one is wanted as well, in a new turn."
    )


def test_a_forgotten_result_is_told_with_its_times_and_its_size() -> None:
    """Faults 29."""
    marks = {"forgotten": True, "settled_at": 1_764_464_400_000, "forgotten_at": 1_765_069_200_000, "size": 17}
    text = for_model(ended(State.SUCCEEDED, attempt=1, marks=marks))
    assert text == (
        "Note: the call succeeded at 2025-11-30T01:00:00Z; its result of 17 bytes is no longer kept since "
        "2025-12-07T01:00:00Z. Do not call it again."
    )
