"""What the model is told of calls that share a unique key."""

from __future__ import annotations

from typing import Any

import pytest

from toolonce.store.model.outcomes import Failure, Outcome
from toolonce.store.model.states import State
from toolonce.stream.replies.model_text import is_error, words

FOLLOWS = {"reason": "duplicate", "follows": "f" * 32}


def told(state: State, code: str = "", details: dict[str, Any] | None = None, **fields: Any) -> Outcome:
    failure = Failure(code, "why", details or {}) if code else None
    return Outcome("k", "k-f", "bill", "c2", 0, state, failure=failure, **fields)


def test_a_call_that_follows_another_one_is_told_that_the_result_of_that_one_is_its_own() -> None:
    outcome = told(State.HELD, marks=FOLLOWS)
    text = words(outcome)
    assert text.startswith("Pending [held]: `bill` was called before with the same arguments.")
    assert "Do not call it again" in text
    assert not is_error(outcome)


def test_a_call_that_follows_an_unknown_one_is_told_in_the_words_of_unknown() -> None:
    outcome = told(State.HELD, marks={**FOLLOWS, "first_state": "unknown"})
    assert words(outcome) == words(told(State.UNKNOWN))
    assert words(outcome).startswith("Error [unknown]: `bill` was started, and it is not known")
    assert is_error(outcome)


@pytest.mark.parametrize("state", [State.REFUSED, State.CANCELLED, State.EXPIRED])
def test_a_call_that_shares_the_doubt_of_the_first_never_says_that_nothing_was_executed(state: State) -> None:
    text = words(told(State.FAILED, str(state), marks={"follows": "f" * 32, "first_state": str(state)}))
    assert "Nothing was executed" not in text
    assert "One before may have had its effect" in text


@pytest.mark.parametrize("state", [State.REFUSED, State.CANCELLED, State.EXPIRED])
def test_a_call_that_ended_while_it_followed_says_that_the_first_stands(state: State) -> None:
    text = words(told(state, str(state), marks={"follows": "f" * 32}))
    assert "That call stands" in text
    assert "do not say that nothing was done" in text


@pytest.mark.parametrize("code", ["denied", "expired", "cancelled"])
def test_a_tools_own_code_is_not_taken_for_the_end_of_a_first_call(code: str) -> None:
    text = words(told(State.FAILED, code, marks={"follows": "f" * 32}))
    assert "another attempt" not in text


@pytest.mark.parametrize(
    ("first", "said", "advice"),
    [
        (
            {"state": "succeeded", "attempt": 1},
            "The earlier call: `bill` succeeded.",
            "Only one call is made for each order",
        ),
        ({"state": "running", "attempt": 1}, "`bill` is still running", "The earlier call is not finished"),
        ({"state": "unknown", "attempt": 1}, "it is not known whether it took effect", "Do not say that it succeeded"),
        (
            {"state": "failed", "attempt": 1, "error": {"code": "purged", "message": "nobody knows"}},
            "It is not known whether `bill` took effect",
            "Do not say that it succeeded",
        ),
        (
            {"state": "failed", "attempt": 1, "error": {"code": "declined", "message": "card declined"}},
            "Reason: card declined",
            "Only one call is made for each order",
        ),
        (None, "", "Only one call is made for each order"),
    ],
)
def test_a_call_whose_key_is_taken_is_told_what_became_of_the_first(first: Any, said: str, advice: str) -> None:
    details = {"unique_by": "order", "first": first and {"tool": "bill", **first}}
    outcome = told(State.REFUSED, "unique_taken", details)
    text = words(outcome)
    assert text.startswith("Error [unique_taken]: An earlier call of `bill` has the same order and other arguments.")
    assert "Nothing was executed." in text.splitlines()[0]
    assert said in text
    assert advice in text.splitlines()[-1]
    assert is_error(outcome)
