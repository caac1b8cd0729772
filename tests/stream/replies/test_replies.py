"""Every call of a completed turn is answered once, in call order, in a form that its provider takes."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from tests.support.stream.provider_rules import refusal
from tests.support.stream.turns import THREE, Asked, outcomes, request, turn
from toolonce.store.model.outcomes import Failure, Outcome
from toolonce.store.model.parts import FilePart, ImagePart, JsonPart, Parts, TextPart
from toolonce.store.model.states import State
from toolonce.stream.harness.history import history, replies
from toolonce.stream.turns.errors import UnknownDialect
from toolonce.stream.turns.turn import DIALECTS, Dialect, ToolCall, TurnResult

EACH = pytest.mark.parametrize("dialect", DIALECTS)
ODD_IDS = (None, "", "a/b", "é ", "x" * 1400, "k1", "k1", "functions.read:0")


def exchange(dialect: Dialect, asked: TurnResult, answered: list[Outcome]) -> list[dict[str, Any]]:
    told = replies(answered, dialect, turn_id=asked.turn_id, came_in=asked.dialect)
    return [*history(asked, dialect), *told]


def problem(dialect: Dialect, messages: list[dict[str, Any]]) -> str | None:
    return refusal(dialect, json.loads(json.dumps(request(dialect, messages), ensure_ascii=False).encode()))


@EACH
@pytest.mark.parametrize("source", DIALECTS)
def test_a_turn_of_any_dialect_and_its_results_are_taken_by_any_provider(dialect: Dialect, source: Dialect) -> None:
    asked = turn(source)

    assert problem(dialect, exchange(dialect, asked, outcomes(asked, value={"ok": True}))) is None


@EACH
@pytest.mark.parametrize("source", DIALECTS)
def test_ids_that_are_missing_refused_or_repeated_still_pair(dialect: Dialect, source: Dialect) -> None:
    asked = turn(source, [Asked("look", call_id, {"n": n}) for n, call_id in enumerate(ODD_IDS)])

    assert problem(dialect, exchange(dialect, asked, outcomes(asked, value=1))) is None


@EACH
def test_results_come_in_call_order_whatever_order_the_calls_ended_in(dialect: Dialect) -> None:
    asked = turn(dialect, [Asked(f"t{n}", f"id_{n}") for n in range(5)])
    ended = outcomes(asked, value="v")
    ended[1] = replace(ended[1], state=State.UNKNOWN)
    ended[3] = replace(ended[3], state=State.FAILED, failure=Failure("tool_error", "no"))
    random.Random(3).shuffle(ended)

    assert problem(dialect, exchange(dialect, asked, ended)) is None


@EACH
@pytest.mark.parametrize("state", State)
def test_a_call_in_any_state_has_its_one_result(dialect: Dialect, state: State) -> None:
    asked = turn(dialect)

    assert problem(dialect, exchange(dialect, asked, outcomes(asked, state=state))) is None


@EACH
@pytest.mark.parametrize("source", DIALECTS)
def test_a_rejected_call_keeps_its_pairing_and_never_its_invalid_text(dialect: Dialect, source: Dialect) -> None:
    asked = turn(source, [THREE[0], Asked("bad", "call_x", rejected="invalid_json"), THREE[2]])

    messages = exchange(dialect, asked, outcomes(asked, value=1))

    assert problem(dialect, messages) is None
    assert "oops" not in json.dumps(messages)
    assert "not valid JSON" in json.dumps(messages)


@EACH
def test_a_second_outcome_for_one_call_is_refused(dialect: Dialect) -> None:
    asked = turn(dialect)
    placeholder = outcomes(asked, state=State.RUNNING)

    with pytest.raises(ValueError, match="two outcomes for one call"):
        replies([*placeholder, *outcomes(asked, value="late")], dialect, turn_id="turn_1")


@EACH
def test_a_turn_without_calls_has_an_assistant_message_and_no_results(dialect: Dialect) -> None:
    asked = turn(dialect, ())

    assert history(asked, dialect)
    assert replies([], dialect, turn_id="turn_1") == []


@EACH
@pytest.mark.parametrize("outcome", ["truncated", "filtered", "failed", "aborted", "malformed", "withheld"])
def test_a_turn_that_did_not_end_properly_adds_nothing_to_the_history(dialect: Dialect, outcome: Any) -> None:
    assert history(replace(turn(dialect), outcome=outcome), dialect) == []


def test_a_paused_turn_goes_back_unchanged() -> None:
    blocks = ({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},)
    paused = TurnResult("anthropic", "paused", assistant=blocks)

    assert history(paused, "anthropic") == [{"role": "assistant", "content": list(blocks)}]


@EACH
def test_the_providers_own_items_come_back_as_they_were(dialect: Dialect) -> None:
    asked = turn(dialect)

    sent = json.dumps(history(asked, dialect))

    for item in asked.assistant:
        assert json.dumps(item) in sent


@EACH
def test_empty_arguments_are_written_as_an_empty_object(dialect: Dialect) -> None:
    other: Dialect = "anthropic" if dialect != "anthropic" else "openai-chat"

    sent = json.dumps(history(turn(other, [Asked("now", "call_c")]), dialect))

    assert '"{}"' in sent or "{}" in sent
    assert '""' not in sent


@EACH
def test_the_same_turn_gives_the_same_bytes_again(dialect: Dialect) -> None:
    asked = turn(dialect, [Asked("look", None), Asked("look", None)])
    answered = outcomes(asked, value=[1])

    assert exchange(dialect, asked, answered) == exchange(dialect, asked, answered)


@EACH
@pytest.mark.parametrize("value", [0, False, "", [], {}, None])
def test_a_false_like_value_is_a_result_and_no_error(dialect: Dialect, value: Any) -> None:
    asked = turn(dialect, THREE[:1])

    sent = json.dumps(replies(outcomes(asked, value=value), dialect, turn_id="turn_1"))

    assert problem(dialect, exchange(dialect, asked, outcomes(asked, value=value))) is None
    assert "error" not in sent
    assert (value if isinstance(value, str) else json.dumps(value)) in sent


@EACH
def test_no_digit_of_a_large_integer_is_lost(dialect: Dialect) -> None:
    asked = turn(dialect, THREE[:1])

    sent = json.dumps(replies(outcomes(asked, value={"id": 9007199254740993}), dialect, turn_id="turn_1"))

    assert "9007199254740993" in sent


def test_google_is_given_the_digits_of_integers_that_its_doubles_cannot_hold() -> None:
    value = {"exact": 2**53, "not": [2**53 + 1, -(2**63)], "flag": True}

    (content,) = replies(outcomes(turn("google-generate", THREE[:1]), value=value), "google-generate", turn_id="t")

    assert content["parts"][0]["functionResponse"]["response"]["output"] == {
        "exact": 2**53, "not": ["9007199254740993", "-9223372036854775808"], "flag": True
    }  # fmt: skip


@EACH
def test_a_deeply_nested_value_still_has_its_result(dialect: Dialect) -> None:
    value: Any = []
    for _ in range(700):
        value = [value]
    asked = turn(dialect, THREE[:1])

    assert problem(dialect, exchange(dialect, asked, outcomes(asked, value=value))) is None


def test_google_is_given_an_id_only_where_one_came() -> None:
    asked = turn("google-generate", [Asked("quote", None), Asked("quote", "g1")])

    (content,) = replies(outcomes(asked, value=1), "google-generate", turn_id="t")

    assert [part["functionResponse"].get("id", "none") for part in content["parts"]] == ["none", "g1"]


@EACH
def test_a_number_that_json_has_no_word_for_never_makes_the_request_unreadable(dialect: Dialect) -> None:
    asked = turn(dialect, THREE[:1])

    sent = replies(outcomes(asked, value={"n": float("inf")}), dialect, turn_id="turn_1")

    assert "inf" in json.dumps(sent, allow_nan=False).lower()


@EACH
def test_a_lone_surrogate_never_makes_the_request_unreadable(dialect: Dialect) -> None:
    asked = turn(dialect, [Asked("look", "a\ud83d", {"q": "\ud83d"})], text="half \ude00")
    other = turn(
        "openai-chat" if dialect != "openai-chat" else "anthropic", [Asked("look", "a\ud83d", {"q": "\ud83d"})]
    )

    for made in (asked, other):
        assert problem(dialect, exchange(dialect, made, outcomes(made, value=["\ud83d", "\ud83d\ude00"]))) is None


def test_an_unknown_dialect_is_named_with_those_that_exist() -> None:
    with pytest.raises(UnknownDialect, match=r"no dialect 'openai'.*openai-chat"):
        replies([], "openai", turn_id="t")  # type: ignore[arg-type]


RICH = Parts(
    (TextPart("two"), JsonPart({"n": 1}), ImagePart("image/png", data="iVBO"), FilePart("application/pdf", data="JVBE"))
)


@EACH
@pytest.mark.parametrize("is_error", [False, True])
def test_pictures_and_files_arrive_or_are_named_in_text(dialect: Dialect, is_error: bool) -> None:
    asked = turn(dialect, THREE[:1])
    answered = outcomes(asked, value=replace(RICH, is_error=is_error).to_json())

    sent = json.dumps(replies(answered, dialect, turn_id="turn_1"))

    assert problem(dialect, exchange(dialect, asked, answered)) is None
    assert "iVBO" in sent or "[image (image/png) of 3 bytes, not shown here]" in sent
    assert "JVBE" in sent or "[file (application/pdf) of 3 bytes, not shown here]" in sent
    assert ("The tool ran and reports an error" in sent) == is_error


@pytest.mark.parametrize(
    ("dialect", "flag"),
    [
        ("anthropic", '"is_error": true'),
        ("google-generate", '"response": {"error": '),
        ("google-interactions", '"is_error": true'),
        ("openai-chat", '"content": "Error ['),
        ("openai-responses", '"output": "Error ['),
    ],
)
@pytest.mark.parametrize("state", [State.FAILED, State.REFUSED, State.UNKNOWN, State.CANCELLED, State.EXPIRED])
def test_what_went_wrong_carries_the_error_flag_of_its_dialect(dialect: Dialect, flag: str, state: State) -> None:
    asked = turn(dialect, THREE[:1])

    assert flag in json.dumps(replies(outcomes(asked, state=state), dialect, turn_id="turn_1"))
    assert flag not in json.dumps(replies(outcomes(asked, state=State.RUNNING), dialect, turn_id="turn_1"))


@pytest.mark.parametrize(
    "refused",
    [
        Outcome("k", "k-f", "t", "id_1", 0, State.SUCCEEDED, conflict=True),
        Outcome("k", "k-f", "t", "id_1", 0, State.RUNNING, conflict=True),
        Outcome("k", "k-f", "t", "id_1", 0, None, failure=Failure("invalid_arguments", "no")),
    ],
)
def test_a_submission_that_was_not_admitted_carries_the_error_flag(refused: Outcome) -> None:
    (message,) = replies([refused], "anthropic", turn_id="t")

    assert message["content"][0]["is_error"] is True


def call(echo: dict[str, Any], *, kind: Any = "function") -> list[Outcome]:
    made = ToolCall("t", {}, "id_1", kind, 0, "turn_1", echo)
    return outcomes(TurnResult("anthropic", "completed", (made,)), value="v")


def test_fields_that_the_provider_wants_back_are_on_the_result() -> None:
    caller = {"type": "program", "caller_id": "p1"}

    (anthropic,) = replies(call({"toolset_name": "browser", "caller": caller}), "anthropic", turn_id="t")
    (function,) = replies(call({"caller": caller, "namespace": "crm"}), "openai-responses", turn_id="t")
    (custom,) = replies(call({"caller": caller, "namespace": "crm"}, kind="custom"), "openai-responses", turn_id="t")

    assert anthropic["content"][0] == {
        "type": "tool_result", "tool_use_id": "id_1", "content": "v", "toolset_name": "browser"
    }  # fmt: skip
    assert (function["caller"], function["namespace"]) == (caller, "crm")
    assert custom == {"type": "custom_tool_call_output", "call_id": "id_1", "output": "v", "caller": caller}


@EACH
def test_a_custom_tools_free_text_goes_to_every_provider(dialect: Dialect) -> None:
    asked = TurnResult(
        "openai-responses" if dialect != "openai-responses" else "openai-chat",
        "completed",
        (ToolCall("sql", "select 1", "id_1", "custom", 0, "turn_1"),),
        turn_id="turn_1",
    )

    messages = exchange(dialect, asked, outcomes(asked, value="one row"))

    assert problem(dialect, messages) is None
    assert "select 1" in json.dumps(messages)
    assert ("custom" in json.dumps(messages)) == dialect.startswith("openai")


def test_the_first_call_that_no_gemini_model_made_carries_the_documented_signature() -> None:
    (content,) = history(turn("anthropic"), "google-generate")

    signatures = [part.get("thoughtSignature") for part in content["parts"] if "functionCall" in part]
    assert signatures == ["skip_thought_signature_validator", None, None]


def test_fields_of_another_providers_call_stay_away() -> None:
    answered = call({"caller": {"type": "code_execution_20250825", "tool_id": "x"}})

    (sent,) = replies(answered, "openai-responses", turn_id="t", came_in="anthropic")

    assert "caller" not in sent


def test_an_old_function_call_is_answered_under_its_name() -> None:
    assert replies(call({"legacy": True}), "openai-chat", turn_id="t") == [
        {"role": "function", "name": "t", "content": "v"}
    ]


def test_blank_text_blocks_never_go_back_to_anthropic() -> None:
    asked = turn("anthropic", text=" ")

    (message,) = history(asked, "anthropic")

    assert [block["type"] for block in message["content"]] == ["thinking", "tool_use", "tool_use", "tool_use"]


def test_items_that_show_other_calls_than_the_turn_has_are_refused() -> None:
    asked = turn("anthropic")

    with pytest.raises(ValueError, match="the turn has 2 calls, but its items contain 3"):
        history(replace(asked, calls=asked.calls[:2]), "anthropic")
