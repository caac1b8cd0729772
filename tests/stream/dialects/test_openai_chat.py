"""The servers that imitate Chat, one oddity after another."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stream.feeding import Frame, decoded, short

DONE = b"data: [DONE]\n\n"


def chunk(finish: str | None = None, **delta: Any) -> Frame:
    return {"id": "cc", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def entry(index: object = None, call_id: object = None, name: object = None, arguments: object = None) -> Frame:
    about = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    one = {"index": index, "id": call_id, "function": about}
    return chunk(tool_calls=[{key: value for key, value in one.items() if value is not None}])


def outcome(*frames: Frame | bytes, finish: str | None = "tool_calls") -> tuple[Any, ...]:
    return short(decoded("openai-chat", *frames, chunk(finish), DONE))


def test_a_first_name_may_come_with_the_id_after_arguments() -> None:
    assert outcome(entry(0, arguments='{"a":'), entry(0, "c1", "f", "1}")) == ("completed", [("f", "c1", {"a": 1})], [])


def test_another_id_with_another_name_opens_a_call_where_the_first_had_no_id() -> None:
    first, second = entry(0, None, "f", "{}"), entry(0, "c2", "g", "{}")

    assert outcome(first, second) == ("completed", [("f", None, {}), ("g", "c2", {})], [])


def test_the_id_null_in_words_is_no_id() -> None:
    assert outcome(entry(0, "null", "f", "{}"), entry(0, "null", "", "")) == ("completed", [("f", None, {})], [])


def test_an_index_in_digits_is_an_index() -> None:
    frames = entry("0", "c1", "f", '{"a":'), entry("1", "c2", "g", "{}"), entry("0", None, None, "1}")

    assert outcome(*frames) == ("completed", [("f", "c1", {"a": 1}), ("g", "c2", {})], [])


@pytest.mark.parametrize("index", ["x", 1.5, [], True, "1_0"])
def test_an_index_that_is_no_number_is_malformed(index: object) -> None:
    assert outcome(entry(index, "c1", "f", "{}"))[0] == "malformed"


def test_a_fragment_that_could_belong_to_two_calls_is_malformed() -> None:
    assert outcome(entry(0, "c1", "f", "{}"), entry(1, "c2", "g", "{}"), entry(7, arguments=" "))[0] == "malformed"


def test_without_an_index_a_known_id_wins_over_the_call_opened_last() -> None:
    frames = entry(None, "c1", "f", '{"a":'), entry(None, "c2", "g", "{}"), entry(None, "c1", None, "1}")

    assert outcome(*frames) == ("completed", [("f", "c1", {"a": 1}), ("g", "c2", {})], [])


def test_a_call_that_changes_its_name_after_arguments_is_malformed() -> None:
    assert outcome(entry(0, "c1", "f", "{"), entry(0, None, "g", "}"))[0] == "malformed"


def test_an_entry_of_another_type_is_not_ours() -> None:
    foreign = chunk(tool_calls=[{"index": 0, "id": "s1", "type": "web_search", "function": {"name": "s"}}])
    more = entry(0, None, None, '{"q":1}')

    assert outcome(foreign, more, entry(1, "c1", "f", "{}")) == ("completed", [("f", "c1", {})], [])
    assert outcome(foreign, more)[0] == "withheld"


@pytest.mark.parametrize("entries", [{}, "x", [1], 5])
def test_tool_calls_of_a_wrong_type_are_malformed(entries: object) -> None:
    assert outcome(chunk(tool_calls=entries))[0] == "malformed"


def test_both_forms_of_a_call_in_one_turn_are_malformed() -> None:
    assert outcome(entry(0, "c1", "f", "{}"), chunk(function_call={"name": "f", "arguments": "{}"}))[0] == "malformed"


def test_an_empty_old_form_says_nothing() -> None:
    legacy = chunk(function_call={"name": "", "arguments": ""}, content="Hi")

    assert outcome(legacy, finish="stop") == ("completed", [], [])


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ([{"a": 1}, ""], ("completed", [("f", "c1", {"a": 1})], [])),
        ([{"a": 1}, "{}"], ("malformed", [], [])),
        ([{"a": 1}, {"a": 1}], ("malformed", [], [])),
        (["{}", '{"a":1}'], ("completed", [("f", "c1", {"a": 1})], [])),
        (["{}", "{}"], ("completed", [("f", "c1", {})], [])),
        (["{}", " "], ("malformed", [], [])),
        ([[1]], ("completed", [], [("f", "not_an_object")])),
        ([False], ("completed", [], [("f", "not_an_object")])),
    ],
)
def test_objects_and_placeholders_among_fragments(arguments: list[object], want: tuple[Any, ...]) -> None:
    frames = [entry(0, "c1", "f", arguments[0]), *(entry(0, None, None, more) for more in arguments[1:])]

    assert outcome(*frames) == want


def test_the_first_bad_finish_reason_stands() -> None:
    whole = entry(0, "c1", "f", "{}")

    assert short(decoded("openai-chat", whole, chunk("length"), chunk("tool_calls"), DONE))[0] == "truncated"
    assert short(decoded("openai-chat", whole, chunk("tool_calls"), chunk("content_filter"), DONE))[0] == "filtered"


def test_content_after_done_is_malformed_and_usage_is_not() -> None:
    whole = entry(0, "c1", "f", "{}")

    assert decoded("openai-chat", whole, chunk("stop"), DONE, chunk(content="x")).outcome == "malformed"
    assert decoded("openai-chat", whole, chunk("stop"), DONE, entry(1, "c2", "f", "{}")).outcome == "malformed"
    assert decoded("openai-chat", whole, chunk("stop"), DONE, {"choices": [], "usage": {}}).outcome == "completed"


def test_done_without_a_finish_reason_completes_a_turn_without_calls_only() -> None:
    assert decoded("openai-chat", chunk(content="Hi"), DONE).outcome == "completed"
    assert decoded("openai-chat", chunk(content="Hi"), entry(0, "c1", "f", "{}"), DONE).outcome == "truncated"
    assert decoded("openai-chat", chunk(content="Hi")).outcome == "truncated"


def test_a_refusal_is_filtered_whatever_the_finish_reason_promises() -> None:
    assert outcome(entry(0, "c1", "f", "{}"), chunk(refusal="no"))[0] == "filtered"
    assert decoded("openai-chat", chunk(refusal="no"), DONE).outcome == "filtered"


def test_choices_without_a_number_are_parts_of_one_message() -> None:
    bare = {"id": "cc", "choices": [{"delta": {"content": "a"}}, {"delta": {"content": "b"}}]}

    assert decoded("openai-chat", bare, chunk("stop"), DONE).text == "ab"


def test_text_in_parts_is_visible_and_thinking_is_not() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Hi"}]

    assert decoded("openai-chat", chunk(content=parts), chunk("stop"), DONE).text == "Hi"


def test_names_and_ids_that_cannot_be_written_are_malformed() -> None:
    assert outcome(entry(0, "c1", "\ud83d", "{}"))[0] == "malformed"
    assert outcome(entry(0, "\ud83d", "f", "{}"))[0] == "malformed"
    assert outcome(entry(0, 5, "f", "{}"))[0] == "malformed"


def test_the_message_that_goes_back_has_valid_arguments_and_its_reasoning() -> None:
    frames = (
        chunk(reasoning_content="so ", content=""),
        chunk(reasoning_content="be it"),
        entry(0, "c1", "f", ""),
        entry(1, "c2", "g", '{"a":1,}'),
        chunk(tool_calls=[{"index": 2, "id": "c3", "type": "custom", "custom": {"name": "h", "input": "x"}}]),
        chunk(tool_calls=[{"index": 0, "extra_content": {"google": {"thought_signature": "s"}}}]),
    )
    result = decoded("openai-chat", *frames, chunk("tool_calls"), DONE)

    signature = {"google": {"thought_signature": "s"}}
    assert result.assistant == (
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "so be it",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "f", "arguments": "{}"},
                    "extra_content": signature,
                },
                {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
                {"id": "c3", "type": "custom", "custom": {"name": "h", "input": "x"}},
            ],
        },
    )
    assert result.calls[0].echo == {"extra_content": signature}
