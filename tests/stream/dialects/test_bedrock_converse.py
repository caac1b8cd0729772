"""Bedrock Converse beyond the conformance streams: damage, what goes back, its usage, its turn id, its requests."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stream.event_stream import event, exception
from tests.support.stream.transcripts import CONFORMANCE, RecordedStream, answer, exact, transcripts
from toolonce.stream import TurnDecoder, TurnResult, decode_body
from toolonce.stream.decoding.detect import detect_dialect
from toolonce.stream.dialects.bedrock_converse.replies import for_boto3
from toolonce.stream.dialects.request import forbid_parallel_calls
from toolonce.stream.harness.history import history
from toolonce.stream.turns.errors import NotOffered, UnknownDialect

STREAMS = [t for t in transcripts(CONFORMANCE) if t.dialect == "bedrock-converse" and t.kind == "stream"]
RELEASED = [t for t in STREAMS if t.answer["calls"]]


def fed(data: bytes, *, broken: bool = False) -> TurnResult:
    decoder = TurnDecoder("bedrock-converse")
    decoder.feed(data)
    return decoder.abort() if broken else decoder.eof()


def start(index: int, **use: Any) -> bytes:
    about = {"toolUseId": f"id_{index}", "name": "f", **use}
    return event("contentBlockStart", {"contentBlockIndex": index, "start": {"toolUse": about}})


def delta(index: int, **what: Any) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": index, "delta": what})


def stop(index: int) -> bytes:
    return event("contentBlockStop", {"contentBlockIndex": index})


def ended(reason: str = "tool_use") -> bytes:
    return event("messageStop", {"stopReason": reason})


CALL = start(0) + delta(0, toolUse={"input": '{"a":1}'}) + stop(0)


@pytest.mark.parametrize("transcript", [pytest.param(t, id=t.key) for t in RELEASED])
@given(data=st.data())
def test_a_flipped_byte_never_changes_a_call(transcript: RecordedStream, data: st.DataObject) -> None:
    wrong = bytearray(transcript.data)
    wrong[data.draw(st.integers(0, len(wrong) - 1))] ^= data.draw(st.integers(1, 255))
    result = fed(bytes(wrong))

    assert result.calls == () or exact(answer(result)["calls"]) == exact(transcript.answer["calls"])


@pytest.mark.parametrize("transcript", [pytest.param(t, id=t.key) for t in RELEASED])
def test_no_cut_before_the_end_of_message_stop_releases_anything(transcript: RecordedStream) -> None:
    whole = exact(transcript.answer["calls"])
    released = [at for at in range(len(transcript.data) + 1) if fed(transcript.data[:at]).calls]

    assert released == list(range(released[0], len(transcript.data) + 1))
    assert b"messageStop" in transcript.data[: released[0]]
    assert exact(answer(fed(transcript.data[: released[0]]))["calls"]) == whole
    assert all(fed(transcript.data[:at], broken=True).outcome == "aborted" for at in range(0, released[0], 7))


@pytest.mark.parametrize(
    "data",
    [
        CALL + delta(0, toolUse={"input": "{}"}) + ended(),
        CALL + start(1) + delta(1, text="x") + stop(1) + ended(),
        CALL + event("contentBlockStop", b"") + ended(),
        CALL + event("contentBlockDelta", b"[DONE]") + ended(),
        CALL + ended() + ended(),
        CALL + ended() + stop(0),
        event("messageStart", b"{}") * 2 + CALL + ended(),
        delta(0, text="x") + CALL + ended(),
    ],
)
def test_what_cannot_be_right_is_malformed(data: bytes) -> None:
    assert fed(data).outcome == "malformed"


@pytest.mark.parametrize(
    ("parts", "want"),
    [
        ([start(0, input={"a": 1})], ("completed", [{"a": 1}])),
        ([start(0, input={}), delta(0, toolUse={"input": '{"a":1}'})], ("completed", [{"a": 1}])),
        ([start(0, input={"a": 1}), delta(0, toolUse={"input": '{"a":1}'})], ("malformed", [])),
        ([start(0), delta(0, toolUse={"input": {"a": 1}})], ("completed", [{"a": 1}])),
    ],
)
def test_arguments_as_an_object_count_in_the_start_and_as_the_only_fragment(
    parts: list[bytes], want: tuple[str, list[Any]]
) -> None:
    result = fed(b"".join(parts) + stop(0) + ended())

    assert (result.outcome, [call.arguments for call in result.calls]) == want


def test_an_exception_is_a_failure_with_its_name_and_words_whatever_came_before() -> None:
    result = fed(CALL + ended() + exception("throttlingException", {"message": "Slow down"}))

    assert result.outcome == "failed"
    assert result.error is not None
    assert (result.error.code, result.error.message) == ("throttlingException", "Slow down")


def test_a_release_waits_for_the_usage_that_follows_it() -> None:
    decoder = TurnDecoder("bedrock-converse", max_tokens=5)
    decoder.feed(CALL + ended())
    assert (decoder.released, decoder.finished) == (True, False)
    decoder.feed(event("metadata", {"usage": {"inputTokens": 1, "outputTokens": 5, "totalTokens": 6}}))

    assert decoder.finished
    assert (decoder.eof().outcome, decoder.result and decoder.result.tokens_seen) == ("truncated", 5)


def test_the_history_has_each_block_as_the_service_takes_it() -> None:
    data = (
        delta(0, reasoningContent={"text": "hm"})
        + delta(0, reasoningContent={"signature": "c2ln"})
        + stop(0)
        + delta(1, reasoningContent={"redactedContent": "eA=="})
        + stop(1)
        + delta(2, text="It says ")
        + delta(2, text="so.", citation=None)
        + delta(2, citation={"title": "t"})
        + stop(2)
        + start(3, type="server_tool_use")
        + delta(3, toolUse={"input": '{"q":1}'})
        + stop(3)
        + start(5, name="no spaces, please")
        + delta(5, toolUse={"input": '{"a":1}'})
        + stop(5)
        + ended()
    )
    (message,) = history(fed(data), "bedrock-converse")

    assert message["role"] == "assistant"
    assert message["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": "eA=="}},
        {"citationsContent": {"content": [{"text": "It says so."}], "citations": [{"title": "t"}]}},
        {"toolUse": {"toolUseId": "id_3", "name": "f", "type": "server_tool_use", "input": {"q": 1}}},
        {"toolUse": {"toolUseId": "id_5", "name": "no_spaces__please", "input": {"a": 1}}},
    ]
    assert for_boto3([message])[0]["content"][1] == {"reasoningContent": {"redactedContent": base64.b64decode("eA==")}}


def test_the_request_id_of_a_boto3_response_is_the_turn_id() -> None:
    message = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}]}
    document = {"output": {"message": message}, "stopReason": "tool_use", "ResponseMetadata": {"RequestId": "r-1"}}
    result = decode_body(json.dumps(document).encode(), "bedrock-converse")

    assert (result.turn_id, result.calls[0].turn_id) == ("r-1", "r-1")


@pytest.mark.parametrize("name", ["conv_block_gap.bin", "conv_text_only.bin", "conv_body_call.json"])
def test_its_streams_and_bodies_are_recognised(name: str) -> None:
    assert detect_dialect((CONFORMANCE / "bedrock-converse" / name).read_bytes()) == "bedrock-converse"


def test_other_event_streams_and_lone_errors_are_not_guessed() -> None:
    for data in (event("chunk", {"bytes": "e30="}), b'{"message":"no"}'):
        with pytest.raises(UnknownDialect):
            detect_dialect(data)


def test_one_call_at_most_can_be_asked_of_claude_alone() -> None:
    body = {"modelId": "anthropic.claude-x", "toolConfig": {"tools": [{}]}}
    chosen = {**body, "toolConfig": {"tools": [{}], "toolChoice": {"any": {}}}}
    own = [forbid_parallel_calls(b, "bedrock-converse")["additionalModelRequestFields"] for b in (body, chosen)]

    assert own == [
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        {"tool_choice": {"disable_parallel_tool_use": True}},
    ]
    assert forbid_parallel_calls({"modelId": "anthropic.claude-x"}, "bedrock-converse").keys() == {"modelId"}
    with pytest.raises(NotOffered, match="ordered=True"):
        forbid_parallel_calls({"modelId": "amazon.nova", "toolConfig": {"tools": [{}]}}, "bedrock-converse")


@pytest.mark.parametrize("document", [b'{"message": "Denied"}', b'{\n  "error": {"message": "Denied"}\n}\n'])
def test_a_document_in_the_place_of_the_stream_is_malformed_and_the_reason_names_it(document: bytes) -> None:
    result = fed(document)

    assert result.outcome == "malformed"
    assert "looks like one JSON document (decode_body)" in result.diagnostics[0]
