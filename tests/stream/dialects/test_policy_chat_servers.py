"""What servers that imitate OpenAI Chat do besides, sentence by sentence of the policy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.stream.feeding import Frame, in_all_pieces, short, stream
from toolonce.stream import UnknownDialect, decode_body, detect_dialect

DONE = b"data: [DONE]\n\n"
MALFORMED: tuple[Any, ...] = ("malformed", [], [])
CALL: Frame = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": '{"a":1}'}}
RAN: tuple[Any, ...] = ("completed", [("f", "c1", {"a": 1})], [])


def chunk(finish: object = None, /, *, also: Frame | None = None, **delta: Any) -> Frame:
    return {"id": "cc", "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **(also or {})}]}


def body(*choices: Frame) -> tuple[Any, ...]:
    return short(decode_body(json.dumps({"id": "cc", "choices": list(choices)}).encode(), "openai-chat"))


@pytest.mark.parametrize("word", ["eos", "eos_token"])
def test_a_servers_own_word_for_stop_runs_calls_and_ends_a_text(word: str) -> None:
    assert short(in_all_pieces("openai-chat", stream(chunk(tool_calls=[CALL]), chunk(word), DONE))) == RAN
    assert in_all_pieces("openai-chat", stream(chunk(content="Hi"), chunk(word))).outcome == "completed"


def test_mistrals_word_for_a_full_context_window_cuts_the_turn() -> None:
    data = stream(chunk(tool_calls=[CALL]), chunk("model_length"), DONE)

    assert in_all_pieces("openai-chat", data).outcome == "truncated"


@pytest.mark.parametrize("native", ["length", "max_tokens", "MAX_TOKENS", "Max_Output_Tokens", "model_length"])
@pytest.mark.parametrize("good", ["tool_calls", "stop", "eos"])
def test_a_native_word_that_says_cut_beside_a_good_finish_reason_cuts_the_turn(native: str, good: str) -> None:
    told = chunk(good, also={"native_finish_reason": native})
    choice = {"message": {"tool_calls": [CALL]}, "finish_reason": good, "native_finish_reason": native}

    for frames in ([chunk(tool_calls=[CALL]), told], [{**told, "choices": [told["choices"][0] | {"delta": {}}]}]):
        assert in_all_pieces("openai-chat", stream(*frames, DONE)).outcome == "truncated"
        assert in_all_pieces("openai-chat", stream(*frames)).outcome == "truncated"
    assert body(choice) == ("truncated", [], [])


@pytest.mark.parametrize("native", ["STOP", "end_turn", "completed", "tool_use", "length?", "", None, 7, ["length"]])
def test_other_native_words_say_nothing(native: object) -> None:
    told = chunk("tool_calls", also={"native_finish_reason": native})

    assert short(in_all_pieces("openai-chat", stream(chunk(tool_calls=[CALL]), told, DONE))) == RAN


def test_a_bad_finish_reason_comes_before_the_native_word() -> None:
    told = chunk("content_filter", also={"native_finish_reason": "max_tokens"})

    assert in_all_pieces("openai-chat", stream(told, DONE)).outcome == "filtered"


@pytest.mark.parametrize(
    ("details", "finish", "want"),
    [
        ({"type": "stop"}, None, "completed"),
        ({"type": "max_tokens"}, "", "truncated"),
        ({"type": "new"}, None, "withheld"),
        ({"type": "max_tokens"}, "stop", "completed"),
        ({"type": None}, None, "truncated"),
        ("stop", None, "truncated"),
    ],
)
def test_finish_details_are_read_where_the_finish_reason_is_missing(details: object, finish: object, want: str) -> None:
    frames = [chunk(tool_calls=[CALL]), chunk(finish, also={"finish_details": details})]

    assert in_all_pieces("openai-chat", stream(*frames, DONE)).outcome == want


@pytest.mark.parametrize("unnumbered", [{}, {"index": None}])
def test_choices_without_a_number_are_parts_of_one_message(unnumbered: Frame) -> None:
    words = {**unnumbered, "finish_reason": "stop"}
    calls = {**unnumbered, "finish_reason": "tool_calls"}
    other = {"index": 1, "finish_reason": "length"}
    message = [{"content": "Hi"}, {"tool_calls": [CALL]}, {"tool_calls": [{**CALL, "id": "c2"}]}]
    whole = [words | {"message": message[0]}, calls | {"message": message[1]}, other | {"message": message[2]}]
    streamed = [words | {"delta": message[0]}, calls | {"delta": message[1]}, other | {"delta": message[2]}]

    assert body(*whole) == RAN
    assert short(in_all_pieces("openai-chat", stream({"choices": streamed}, DONE))) == RAN
    assert body(*whole[1::-1]) == RAN
    assert body(*whole, calls | {"message": message[2]})[1] == [("f", "c1", {"a": 1}), ("f", "c2", {"a": 1})]


def test_one_cut_choice_without_a_number_cuts_the_whole() -> None:
    for finish in ("length", "max_tokens"):
        cut = {"message": {"content": "Hi"}, "finish_reason": finish}
        assert body({"message": {"tool_calls": [CALL]}, "finish_reason": "tool_calls"}, cut)[0] == "truncated"


def test_choices_with_other_numbers_never_run_beside_one_without() -> None:
    assert body({"index": 1, "message": {"tool_calls": [CALL]}, "finish_reason": "tool_calls"})[0] == "truncated"
    odd_numbers: list[Any] = [1, "1", -1, 0.5, [], {}]
    for odd in odd_numbers:
        alone = {"index": odd, "message": {"tool_calls": [CALL]}, "finish_reason": "tool_calls"}
        assert body({"message": {"content": "Hi"}, "finish_reason": "stop"}, alone) == ("completed", [], [])


@pytest.mark.parametrize("missing", [{}, {"finish_reason": None}, {"finish_reason": ""}])
def test_a_body_without_a_finish_reason_is_completed_where_it_holds_no_call(missing: Frame) -> None:
    assert body({"index": 0, "message": {"content": "Hi"}, **missing}) == ("completed", [], [])
    assert body({"index": 0, "message": {"content": None}, **missing}) == ("completed", [], [])
    assert body({"index": 0, "message": {"tool_calls": [CALL]}, **missing})[0] == "truncated"
    assert body({"index": 0, "message": {"function_call": {"name": "f", "arguments": "{}"}}, **missing})[0] == (
        "truncated"
    )
    assert body({"index": 0, "message": {"content": "Hi", "refusal": "no"}, **missing})[0] == "filtered"
    assert body({"index": 0, "message": {"content": "Hi"}, "native_finish_reason": "length"})[0] == "truncated"


def test_a_body_without_a_message_and_a_stream_without_a_finish_reason_stay_truncated() -> None:
    for odd in ({"index": 0}, {"index": 0, "message": None}, {"index": 0, "message": "Hi"}, {"index": 0, "text": "Hi"}):
        assert body(odd)[0] == "truncated"
    assert in_all_pieces("openai-chat", stream(chunk(content="Hi"))).outcome == "truncated"
    message = {"choices": [{"index": 0, "message": {"content": "Hi"}}]}
    assert in_all_pieces("openai-chat", stream(message)).outcome == "truncated"


def entry(index: int | None, call_id: str | None, name: str | None, text: str) -> Frame:
    about = {"name": name, "arguments": text} if name else {"arguments": text}
    one = {"index": index, "id": call_id, "function": about}
    return {key: value for key, value in one.items() if value is not None}


@pytest.mark.parametrize("first", [0, None])
@pytest.mark.parametrize("second", [1, None])
def test_a_fragment_without_identity_goes_on_with_the_last_call_where_none_has_an_index(
    first: int | None, second: int | None
) -> None:
    entries = [entry(first, "c1", "f", '{"a":1}'), entry(second, "c2", "g", '{"b":'), entry(None, None, None, "2}")]
    result = in_all_pieces("openai-chat", stream(*(chunk(tool_calls=[e]) for e in entries), chunk("tool_calls"), DONE))
    indexed = (first, second) != (None, None)

    assert short(result) == (MALFORMED if indexed else ("completed", [*RAN[1], ("g", "c2", {"b": 2})], []))


def test_a_fragment_without_identity_goes_on_with_the_only_call() -> None:
    mixed = [entry(0, "c1", "f", '{"a"'), entry(None, None, None, ":1}")]
    late = [entry(None, "c1", "f", '{"a"'), entry(3, None, None, ":"), entry(None, None, None, "1}")]
    for entries in (mixed, late):
        result = in_all_pieces("openai-chat", stream(*(chunk(tool_calls=[e]) for e in entries), chunk("stop"), DONE))
        assert short(result) == RAN


def test_a_fragment_with_the_id_of_an_indexed_call_is_no_guess() -> None:
    entries = [entry(0, "c1", "f", '{"a"'), entry(1, "c2", "g", "{}"), entry(None, "c1", None, ":1}")]
    result = in_all_pieces("openai-chat", stream(*(chunk(tool_calls=[e]) for e in entries), chunk("stop"), DONE))

    assert short(result) == ("completed", [("f", "c1", {"a": 1}), ("g", "c2", {})], [])


WHOLE = entry(0, "c1", "f", '{"a":1}')


def with_trust(*entries: Frame, end: bytes = DONE, **more: Any) -> tuple[Any, ...]:
    return short(in_all_pieces("openai-chat", stream(*(chunk(tool_calls=[e]) for e in entries), end), **more))


def test_done_alone_ends_a_turn_of_whole_calls_where_the_harness_trusts_it() -> None:
    assert with_trust(WHOLE, trust_done=True) == RAN
    assert with_trust(entry(0, "c1", "f", "{}"), WHOLE, trust_done=True) == RAN
    assert with_trust({**WHOLE, "function": {"name": "f", "arguments": {"a": 1}}}, trust_done=True) == RAN
    assert with_trust(WHOLE) == ("truncated", [], [])
    assert with_trust(WHOLE, end=b"", trust_done=True) == ("truncated", [], [])
    assert with_trust(WHOLE, end=b"", trust_done=True, broken=True) == ("aborted", [], [])
    assert short(in_all_pieces("openai-chat", stream(chunk(content="Hi"), DONE), trust_done=True))[0] == "completed"


@pytest.mark.parametrize("text", ["", "{}", " {} ", "null", '{"a":1', '{"a":1}{', '{"a":1}x', "[1]", '"x"', " ", "7"])
def test_a_call_that_may_be_a_part_leaves_the_turn_truncated_even_then(text: str) -> None:
    assert with_trust(entry(0, "c1", "f", text), trust_done=True) == ("truncated", [], [])
    assert with_trust(WHOLE, entry(1, "c2", "g", text), trust_done=True) == ("truncated", [], [])


def test_a_custom_tool_leaves_the_turn_truncated_even_then() -> None:
    custom = {"index": 1, "id": "c2", "type": "custom", "custom": {"name": "g", "input": '{"a":1}'}}

    assert with_trust(WHOLE, custom, trust_done=True) == ("truncated", [], [])


@pytest.mark.parametrize(
    ("finish", "outcome"), [("length", "truncated"), ("content_filter", "filtered"), ("x", "withheld")]
)
def test_a_finish_reason_is_believed_before_done(finish: str, outcome: str) -> None:
    frames = stream(chunk(tool_calls=[WHOLE]), chunk(finish), DONE)

    assert in_all_pieces("openai-chat", frames, trust_done=True).outcome == outcome


def test_a_fragment_is_no_guess_only_as_long_as_no_entry_had_an_index() -> None:
    entries = [
        entry(None, "c1", "f", '{"a"'), entry(0, None, None, ":1}"),
        entry(None, "c2", "g", '{"b":'), entry(None, None, None, "2}"),
    ]  # fmt: skip
    result = in_all_pieces("openai-chat", stream(*(chunk(tool_calls=[e]) for e in entries), chunk("stop"), DONE))

    assert short(result) == MALFORMED


def test_null_with_any_number_of_blanks_around_it_is_no_arguments() -> None:
    data = stream(chunk(tool_calls=[entry(0, "c1", "f", " \n" * 200 + "null" + " " * 200)]), chunk("stop"), DONE)

    assert short(in_all_pieces("openai-chat", data)) == ("completed", [("f", "c1", {})], [])


def test_a_text_completion_is_no_chat_turn_without_text() -> None:
    choice = {"index": 0, "text": "Hi", "finish_reason": "stop"}

    assert body(choice) == MALFORMED
    assert short(in_all_pieces("openai-chat", stream({"choices": [choice]}, DONE))) == MALFORMED
    with pytest.raises(UnknownDialect):
        detect_dialect(stream({"choices": [choice]}))
    chat = {"choices": [{"index": 0, "delta": {"content": "Hi"}, "text": "Hi", "finish_reason": "stop"}]}
    result = in_all_pieces("openai-chat", stream(chat, DONE))
    assert (detect_dialect(stream(chat)), result.outcome, result.text) == ("openai-chat", "completed", "Hi")
