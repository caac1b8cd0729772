"""The decoder as a harness meets it: drafts, release, limits, misuse, errors, recordings."""

from __future__ import annotations

import json
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tests.support.stream.feeding import decoded, stream
from tests.support.stream.transcripts import CONFORMANCE, decode, transcripts
from tests.support.stream.wire import RENDER, WireCall, event
from toolonce.stream import (
    DIALECTS,
    ArgumentsDraft,
    CallComplete,
    CallDropped,
    CallOpened,
    DecoderClosed,
    Draft,
    LimitExceeded,
    NotOffered,
    ProviderError,
    StreamError,
    StreamMisuse,
    TextDraft,
    TurnDecoder,
    TurnEnded,
    TurnError,
    TurnFailed,
    TurnLimits,
    TurnTruncated,
    UnknownDialect,
    decode_body,
)
from toolonce.stream.dialects.table import TABLE
from toolonce.stream.turns import errors as error_module
from toolonce.stream.turns.turn import Dialect

EVERY = transcripts(CONFORMANCE)
ONE = WireCall("c1", "f", ('{"ci', 'ty": "Z', 'ürich"}'))


def drafts_of(dialect: Dialect, data: bytes, size: int = 7) -> list[Draft]:
    decoder = TurnDecoder(dialect)
    found = [draft for at in range(0, len(data), size) for draft in decoder.feed(data[at : at + size])]
    assert decoder.closing_drafts() == []
    decoder.eof()
    return found + decoder.closing_drafts()


@pytest.mark.parametrize("dialect", [one for one in DIALECTS if one not in ("google-generate", "ollama")])
def test_drafts_tell_the_turn_as_it_comes(dialect: Dialect) -> None:
    found = drafts_of(dialect, RENDER[dialect]([ONE], [0, 0, 0], "Hi"))

    arguments = [draft for draft in found if isinstance(draft, ArgumentsDraft)]
    assert [draft.fragment for draft in arguments] == list(ONE.fragments)
    assert [draft.text for draft in arguments] == ['{"ci', '{"city": "Z', '{"city": "Zürich"}']
    assert [draft.value for draft in arguments] == [{}, {"city": "Z"}, {"city": "Zürich"}]
    others = [draft for draft in found if not isinstance(draft, ArgumentsDraft)]
    assert others == [TextDraft("Hi"), CallOpened(0, "f", "c1"), CallComplete(0, "f", "c1"), TurnEnded("completed")]


@pytest.mark.parametrize("transcript", [pytest.param(t, id=t.key) for t in EVERY if t.kind == "stream"])
def test_every_opened_call_is_delivered_or_dropped_and_every_turn_ends(transcript: Any) -> None:
    decoder = TurnDecoder(transcript.dialect)
    found = list(decoder.feed(transcript.data))
    result = decoder.eof() if transcript.end == "eof" else decoder.abort()
    found += decoder.closing_drafts()

    opened = {draft.call for draft in found if isinstance(draft, CallOpened)}
    dropped = [draft.call for draft in found if isinstance(draft, CallDropped)]
    assert len(dropped) == len(set(dropped))
    assert len(opened) - len(dropped) == len(result.calls)
    assert set(dropped) <= opened
    assert found[-1] == TurnEnded(result.outcome)
    assert sum(isinstance(draft, TurnEnded) for draft in found) == 1
    assert "".join(draft.text for draft in found if isinstance(draft, TextDraft)) == result.text


def test_a_dropped_call_says_why() -> None:
    cut_short = RENDER["anthropic"]([ONE], [0, 0, 0], "").split(b"event: message_delta")[0]
    refused = RENDER["anthropic"]([WireCall("c1", "f", ("[1]",))], [0], "")

    assert drafts_of("anthropic", cut_short)[-2] == CallDropped(0, "f", "c1", "truncated")
    assert drafts_of("anthropic", refused)[-2] == CallDropped(0, "f", "c1", "not_an_object")


def test_neighbouring_pieces_in_one_feed_are_one_draft() -> None:
    found = drafts_of("anthropic", RENDER["anthropic"]([ONE], [0, 0, 0], ""), size=10**6)

    assert [draft.fragment for draft in found if isinstance(draft, ArgumentsDraft)] == ['{"city": "Zürich"}']


def test_a_name_in_pieces_is_shown_as_it_grows() -> None:
    def part(**about: Any) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": about}]}}]}

    found = drafts_of("openai-chat", stream(part(arguments="{"), part(name="get_"), part(arguments="}")), size=10**6)

    assert found[0] == CallOpened(0, "get_", None)
    assert isinstance(found[1], ArgumentsDraft)
    assert found[1].text == "{}"


@pytest.mark.parametrize("dialect", ["openai-responses", "openai-chat", "anthropic", "google-interactions"])
def test_the_end_may_be_told_at_the_release_point(dialect: Dialect) -> None:
    data = RENDER[dialect]([ONE], [0, 0, 0], "")
    early, whole = TurnDecoder(dialect), TurnDecoder(dialect)
    at = 0
    while not early.released:
        early.feed(data[at : at + 1])
        at += 1
    whole.feed(data)

    assert early.eof().calls == whole.eof().calls != ()
    broken = TurnDecoder(dialect)
    broken.feed(data[:at])
    assert broken.abort().outcome == "completed"
    unreleased = TurnDecoder(dialect)
    unreleased.feed(data[: at - 1])
    assert unreleased.abort(ConnectionResetError("x")).outcome == "aborted"


def test_the_cause_of_an_abort_is_told_by_its_type_alone() -> None:
    decoder = TurnDecoder("anthropic")
    result = decoder.abort(ConnectionResetError("secret"))

    assert "transport: ConnectionResetError" in result.diagnostics
    assert "secret" not in repr(result)


def test_a_decoder_that_had_its_end_takes_nothing_more() -> None:
    decoder = TurnDecoder("anthropic")
    assert decoder.result is None
    result = decoder.eof()

    assert decoder.result is result
    for late in (lambda: decoder.feed(b""), decoder.eof, decoder.abort):
        with pytest.raises(DecoderClosed, match="truncated"):
            late()


def test_text_in_the_place_of_bytes_is_misuse() -> None:
    with pytest.raises(StreamMisuse, match="str"):
        TurnDecoder("anthropic").feed("data: x\n\n")  # type: ignore[arg-type]


def test_an_unknown_dialect_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownDialect, match="openai-chat"):
        TurnDecoder("openai")  # type: ignore[arg-type]
    with pytest.raises(UnknownDialect, match="anthropic"):
        decode_body(b"{}", "claude")  # type: ignore[arg-type]


@pytest.mark.parametrize("transcript", [pytest.param(t, id=t.key) for t in EVERY])
def test_a_turn_without_calls_to_run_raises_its_own_error(transcript: Any) -> None:
    result = decode(transcript)
    if result.outcome == "completed":
        assert result.require_calls() == result.calls
        return
    with pytest.raises(TurnError) as caught:
        result.require_calls()

    error = caught.value
    assert type(error).__name__ == f"Turn{result.outcome.title()}"
    assert (error.outcome, error.dialect, error.turn_id) == (result.outcome, transcript.dialect, result.turn_id)
    assert result.outcome in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_the_providers_words_stay_apart_from_what_a_user_may_see() -> None:
    frame = {"error": {"code": 503, "message": "quota of user@example.com", "status": "UNAVAILABLE"}}
    with pytest.raises(TurnFailed) as caught:
        decoded("google-generate", frame).require_calls()

    assert (caught.value.code, caught.value.status) == ("UNAVAILABLE", 503)
    assert caught.value.message == "quota of user@example.com"
    assert "user@example.com" not in str(caught.value)
    assert caught.value.bytes_seen == len(stream(frame))


def test_the_tree_of_errors_is_the_one_that_is_drawn() -> None:
    def drawn(kind: type[Any], depth: int) -> list[str]:
        lines = ["  " * depth + kind.__name__]
        return lines + [line for inner in kind.__subclasses__() for line in drawn(inner, depth + 1)]

    tree = (error_module.__doc__ or "").split("\n\n")[1].splitlines()
    assert [line[: len(line) - len(line.lstrip())] + line.split()[0] for line in tree] == drawn(StreamError, 0)


def wire(count: int, text: str = "{}") -> bytes:
    calls = [WireCall(f"c{number}", "f", (text,)) for number in range(count)]
    return RENDER["anthropic"](calls, list(range(count)), "")


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (TurnLimits(calls=3), "calls"),
        (TurnLimits(total_bytes=300), "total_bytes"),
        (TurnLimits(line_bytes=100), "line_bytes"),
    ],
)
def test_a_limit_that_is_passed_is_a_typed_outcome(limits: TurnLimits, name: str) -> None:
    data = wire(4)
    results = []
    for size in (1, len(data)):
        decoder = TurnDecoder("anthropic", limits=limits)
        for at in range(0, len(data), size):
            decoder.feed(data[at : at + size])
        results.append(decoder.eof())

    assert results[0] == results[1]
    assert (results[0].outcome, results[0].limit, results[0].bytes_seen) == ("malformed", name, len(data))
    with pytest.raises(LimitExceeded, match=name):
        results[0].require_calls()


def test_a_limit_holds_for_bodies_too() -> None:
    body = json.dumps({"content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}] * 3}).encode()

    assert decode_body(body, "anthropic", limits=TurnLimits(calls=2)).limit == "calls"
    assert decode_body(body, "anthropic", limits=TurnLimits(total_bytes=9)).limit == "total_bytes"


def test_arguments_beyond_their_limit_spoil_their_call_alone() -> None:
    calls = [WireCall("c0", "f", ("{", '"a":"xxxx"', "}")), WireCall("c1", "g", ("{}",))]
    decoder = TurnDecoder("anthropic", limits=TurnLimits(argument_chars=8))
    decoder.feed(RENDER["anthropic"](calls, [0, 0, 0, 1], ""))
    result = decoder.eof()

    assert [(call.name, call.reason) for call in result.rejected] == [("f", "too_large")]
    assert [call.name for call in result.calls] == ["g"]


def test_joining_a_hundred_thousand_fragments_is_linear_in_time_and_memory() -> None:
    part = event({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "x"}}]}}]})
    opening = {"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"a":"'}}
    decoder = TurnDecoder("openai-chat")
    decoder.feed(event({"choices": [{"index": 0, "delta": {"tool_calls": [opening]}}]}))
    tracemalloc.start()
    for _ in range(100):
        decoder.feed(part * 1_000)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    decoder.feed(part.replace(b'"x"', b'"\\"}"'))
    decoder.feed(event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n")

    assert decoder.eof().calls[0].arguments == {"a": "x" * 100_000}
    assert held < 2_000_000  # about one pointer for each fragment
    assert peak < 4_000_000


def test_one_long_line_in_single_bytes_is_linear() -> None:
    text = "x" * 300_000
    decoder = TurnDecoder("anthropic")
    for byte in wire(1, json.dumps({"a": text})):
        decoder.feed(bytes((byte,)))

    assert decoder.eof().calls[0].arguments == {"a": text}


def test_a_recording_masks_secrets_and_decodes_to_the_same(tmp_path: Path) -> None:
    secret = "sk-proj-" + "A1b2" * 8
    data = RENDER["anthropic"]([WireCall("c1", "f", ('{"key": "', secret, '"}'))], [0, 0, 0], f"Bearer {'z' * 30}")
    data = data.replace(b"msg_1", secret.encode())
    path = tmp_path / "turn.sse"
    decoder = TurnDecoder("anthropic", record=path)
    for at in range(0, len(data), 11):
        decoder.feed(data[at : at + 11])
    result = decoder.eof()

    recorded = path.read_bytes()
    assert secret.encode() not in recorded
    assert b"zzzz" not in recorded
    about = json.loads((tmp_path / "turn.sse.json").read_text())
    assert (about["dialect"], about["end"], about["outcome"]) == ("anthropic", "eof", result.outcome)
    assert secret not in json.dumps(about)
    again = TurnDecoder("anthropic")
    again.feed(recorded)
    assert again.eof().outcome == "completed"


def test_a_recording_without_secrets_is_byte_for_byte(tmp_path: Path) -> None:
    transcript = next(t for t in EVERY if t.key == "openai-chat/chat_bad_utf8")
    decoder = TurnDecoder(transcript.dialect, record=tmp_path / "turn.sse")
    decoder.feed(transcript.data)
    decoder.abort()

    assert (tmp_path / "turn.sse").read_bytes() == transcript.data
    assert json.loads((tmp_path / "turn.sse.json").read_text())["end"] == "cut"


def test_every_dialect_says_where_its_turn_id_is() -> None:
    for dialect in DIALECTS:
        decoder = TurnDecoder(dialect)
        decoder.feed(RENDER[dialect]([ONE], [0, 0, 0], ""))
        source = TABLE[dialect].turn_id
        assert decoder.eof().turn_id or source.header or source.member == "none"


def test_a_truncated_turn_counts_what_it_cost() -> None:
    start = {"type": "message_start", "message": {"id": "m", "usage": {"output_tokens": 4}}}
    with pytest.raises(TurnTruncated) as caught:
        decoded("anthropic", start).require_calls()

    assert caught.value.tokens_seen == 4


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("spoken", DIALECTS)
def test_a_turn_read_as_the_wrong_dialect_says_which_one_it_looks_like(spoken: str, dialect: Dialect) -> None:
    """Faults 30: in the diagnostics, in the error and in the log; the right one says nothing of the kind."""
    result = decoded(dialect, RENDER[spoken]([ONE], [0, 0, 0], ""))

    if dialect == spoken:
        assert (result.outcome, result.diagnostics) == ("completed", ())
    else:
        hint = f"read as {dialect}, but it looks like {spoken}"
        assert hint in result.diagnostics[0]
        if result.outcome != "completed":
            with pytest.raises(TurnError, match=hint):
                result.require_calls()


def test_a_body_read_as_the_wrong_dialect_says_which_one_it_looks_like() -> None:
    """Faults 30."""
    body = b'{"id":"m","type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}'

    assert "but it looks like anthropic" in decode_body(body, "openai-chat").diagnostics[0]
    assert decode_body(body, "anthropic").diagnostics == ()


def test_a_document_fed_as_a_stream_and_a_stream_taken_as_a_document_are_called_so() -> None:
    """Faults 30: the sibling of a wrong dialect."""
    decoder = TurnDecoder("anthropic")
    decoder.feed(b'{"id":"m",\n"type":"message"}\n')

    assert "it looks like one JSON document (decode_body)" in decoder.eof().diagnostics[0]
    said = decode_body(b"event: message_start\ndata: {}\n\n", "anthropic")
    assert "it looks like a stream of events (TurnDecoder)" in said.diagnostics[0]


def test_a_wrong_dialect_that_ends_properly_without_anything_is_told_as_well() -> None:
    """Faults 30: an imitator of Responses that closes with `[DONE]` is an empty Chat turn."""
    decoder = TurnDecoder("openai-chat")
    decoder.feed(b'data: {"type":"response.created","response":{"id":"r"}}\n\ndata: [DONE]\n\n')
    result = decoder.eof()

    assert result.outcome == "completed"
    assert result.diagnostics == ("read as openai-chat, but it looks like openai-responses; give that in its place",)


def test_done_can_be_trusted_only_of_streams_that_end_with_it() -> None:
    TurnDecoder("openai-chat", trust_done=True)
    with pytest.raises(NotOffered, match="do not end with"):
        TurnDecoder("anthropic", trust_done=True)


def test_an_error_line_counts_behind_any_amount_of_noise() -> None:
    decoder = TurnDecoder("anthropic", limits=TurnLimits(stray_bytes=100))
    decoder.feed(b"noise\n" * 100 + b"error: slot gone\n\n")

    assert decoder.eof().error == ProviderError(message="slot gone")


def test_an_element_of_an_array_has_a_limit() -> None:
    decoder = TurnDecoder("google-generate", limits=TurnLimits(event_bytes=100))
    decoder.feed(b'[{"a": "' + b"x" * 200)

    assert decoder.eof().limit == "event_bytes"
