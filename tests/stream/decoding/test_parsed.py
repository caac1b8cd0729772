"""What a vendor's own library has parsed is read like the bytes it came from. Skipped without the libraries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.support.stream.event_stream import event, exception
from tests.support.stream.provider_server import ProviderServer, Reply
from tests.support.stream.speech import stream
from tests.support.stream.transcripts import CONFORMANCE, answer, decode, exact, transcripts
from toolonce.stream import TurnDecoder, decode_body
from toolonce.stream.turns.errors import StreamMisuse

boto3 = pytest.importorskip("boto3", reason="boto3 is not installed: pip install --group sdk")
CASES = [
    t
    for t in transcripts(CONFORMANCE)
    if t.dialect == "bedrock-converse" and t.kind == "stream" and t.end == "eof" and t.answer["outcome"] == "completed"
]


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


def client(server: ProviderServer) -> Any:
    dummy = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}
    return boto3.client("bedrock-runtime", "us-east-1", endpoint_url=server.url, **dummy)


def streamed(server: ProviderServer, data: bytes) -> Iterator[dict[str, Any]]:
    server.script.append(Reply(data))
    said = [{"role": "user", "content": [{"text": "Well?"}]}]
    events: Iterator[dict[str, Any]] = client(server).converse_stream(modelId="m", messages=said)["stream"]
    return events


@pytest.mark.parametrize("transcript", [pytest.param(t, id=t.key) for t in CASES if "eof_inside" not in t.key])
def test_boto3s_parsed_events_give_the_same_turn_as_the_bytes(server: ProviderServer, transcript: Any) -> None:
    decoder = TurnDecoder("bedrock-converse")
    for parsed in streamed(server, transcript.data):
        decoder.feed_event(parsed)
    result = decoder.eof()

    assert exact(answer(result)) == exact(transcript.answer)
    assert replace(result, bytes_seen=0, assistant=()) == replace(decode(transcript), bytes_seen=0, assistant=())


def test_an_error_that_boto3_raises_out_of_a_stream_fails_the_turn_also_after_its_release(
    server: ProviderServer,
) -> None:
    data = stream("bedrock-converse", "", [("pay", "c1", {"n": 1})])
    decoder = TurnDecoder("bedrock-converse")
    events = streamed(server, data + exception("throttlingException", {"message": "Slow down"}))
    with pytest.raises(Exception, match="Slow down") as raised:
        list(map(decoder.feed_event, events))
    result = decoder.abort(raised.value)

    assert (result.outcome, result.calls, result.error and result.error.code) == ("failed", (), "throttlingException")


def test_boto3s_response_is_read_as_a_whole_one(server: ProviderServer) -> None:
    said = [{"role": "user", "content": [{"text": "Well?"}]}]
    result = decode_body(client(server).converse(modelId="m", messages=said), "bedrock-converse")

    assert (result.outcome, result.text, result.tokens_seen) == ("completed", "Done.", 1)


def test_bytes_in_a_parsed_event_go_back_as_base64() -> None:
    decoder = TurnDecoder("bedrock-converse")
    hidden = {"reasoningContent": {"redactedContent": b"x"}}
    decoder.feed_event({"contentBlockDelta": {"contentBlockIndex": 0, "delta": hidden}})
    decoder.feed_event({"messageStop": {"stopReason": "end_turn"}})

    assert decoder.eof().assistant == ({"reasoningContent": {"redactedContent": "eA=="}},)


@pytest.mark.parametrize("wrong", [5, None, [], {"a": {}, "b": {}}, b"{}", {"messageStop": 5}])
def test_what_is_no_event_is_refused(wrong: object) -> None:
    with pytest.raises(StreamMisuse):
        TurnDecoder("bedrock-converse").feed_event(wrong)


def test_a_parsed_event_of_another_dialect_is_read_by_its_type() -> None:
    decoder = TurnDecoder("anthropic")
    decoder.feed_event({"type": "message_start", "message": {"id": "m"}})
    decoder.feed_event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    decoder.feed_event({"type": "message_stop"})

    assert (decoder.eof().outcome, decoder.result and decoder.result.turn_id) == ("completed", "m")


def test_an_event_and_its_bytes_may_not_be_told_apart() -> None:
    decoder = TurnDecoder("bedrock-converse")
    decoder.feed(event("messageStart", {"role": "assistant"}))
    decoder.feed_event({"messageStop": {"stopReason": "end_turn"}})

    assert decoder.eof().outcome == "completed"
