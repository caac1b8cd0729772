"""A history in groups: no way of cutting it between groups parts a call from its results, in any dialect."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from toolonce.store.model.outcomes import Outcome
from toolonce.stream.agent.trimming import groups, require_pairs, to_send
from toolonce.stream.dialects.request import request_body, taking_turns, user_message
from toolonce.stream.dialects.table import spec_of
from toolonce.stream.harness.history import history, replies
from toolonce.stream.turns.errors import StreamMisuse
from toolonce.stream.turns.turn import DIALECTS, Dialect, ToolCall, TurnResult


def round_of(dialect: Dialect, number: int, calls: int) -> list[dict[str, Any]]:
    """A turn with so many calls, and their results; written as one of another dialect."""
    asked = tuple(ToolCall("echo", {"n": n}, f"c{number}-{n}", position=n) for n in range(calls))
    came_in: Dialect = "openai-chat" if dialect == "anthropic" else "anthropic"
    turn = TurnResult(came_in, "completed", asked, text="So:")
    outcomes = [Outcome(f"{number}{n}", "i", "echo", call.call_id, n, None) for n, call in enumerate(asked)]
    results = replies(outcomes, dialect, turn_id=str(number), came_in=came_in)
    return [*history(turn, dialect, turn_id=str(number)), *results]


def whole(dialect: Dialect) -> list[list[dict[str, Any]]]:
    ask = user_message("And?", dialect)
    return [
        [ask],
        round_of(dialect, 1, 2),
        round_of(dialect, 2, 1),
        round_of(dialect, 3, 0),
        [ask],
        [ask],
        round_of(dialect, 4, 3),
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_question_is_a_group_and_so_is_a_turn_with_its_results(dialect: Dialect) -> None:
    parts = whole(dialect)
    assert groups([message for part in parts for message in part], dialect) == parts


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_history_that_was_joined_before_is_grouped_and_keeps_all_its_messages(dialect: Dialect) -> None:
    joined = taking_turns([message for part in whole(dialect) for message in part], dialect)
    found = groups(joined, dialect)
    assert [message for group in found for message in group] == joined
    for group in found:
        require_pairs(group, dialect, "a group")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_whatever_groups_are_kept_no_call_loses_its_results(dialect: Dialect) -> None:
    parts = whole(dialect)
    for many in range(1, len(parts) + 1):
        for kept in combinations(parts, many):
            to_send(kept, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_whatever_message_with_calls_or_results_is_taken_out_the_cut_is_found(dialect: Dialect) -> None:
    parts = whole(dialect)
    found = 0
    for place, part in enumerate(parts):
        for number, message in enumerate(part):
            if not any(spec_of(dialect).request.pairs(message)):
                continue
            cut = [*parts[:place], [*part[:number], *part[number + 1 :]], *parts[place + 1 :]]
            with pytest.raises(StreamMisuse, match="keep whole groups"):
                to_send(cut, dialect)
            found += 1
    assert found >= 6  # three turns with calls, each with results


def test_a_question_between_a_call_and_its_result_is_found() -> None:
    call, result = round_of("openai-chat", 1, 1)
    with pytest.raises(StreamMisuse, match="no result"):
        to_send([[call], [user_message("And?", "openai-chat")], [result]], "openai-chat")


SYSTEM: dict[Dialect, tuple[str, Any]] = {
    "anthropic": ("system", "Be brief."),
    "openai-responses": ("instructions", "Be brief."),
    "google-generate": ("systemInstruction", {"parts": [{"text": "Be brief."}]}),
    "google-interactions": ("system_instruction", "Be brief."),
    "bedrock-converse": ("system", [{"text": "Be brief."}]),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_system_prompt_stands_where_the_provider_wants_it_and_not_in_the_history(dialect: Dialect) -> None:
    said = [user_message("Hello.", dialect)]
    body = request_body({"model": "m"}, said, dialect, system="Be brief.")
    if dialect in SYSTEM:
        member, value = SYSTEM[dialect]
        assert body.pop(member) == value
    else:
        assert body["messages"].pop(0) == {"role": "system", "content": "Be brief."}
    assert body == request_body({"model": "m"}, said, dialect) == request_body({"model": "m"}, said, dialect, system="")
    assert said == [user_message("Hello.", dialect)]
