"""A stream that is cut anywhere releases nothing before its proper end, and its end is told by bytes alone."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable

import pytest

from tests.support.stream.events import events
from tests.support.stream.transcripts import (
    CONFORMANCE,
    MORE_RECORDINGS,
    RECORDINGS,
    RecordedStream,
    answer,
    decode,
    exact,
    transcripts,
)
from toolonce.stream import DIALECTS, TurnDecoder, TurnResult

STREAMS = [
    transcript
    for folder in (CONFORMANCE, RECORDINGS, MORE_RECORDINGS)
    for transcript in transcripts(folder)
    if transcript.kind == "stream"
]


def has(pattern: bytes) -> Callable[[bytes], bool]:
    return lambda data: re.search(pattern, data) is not None


def is_whole_array(data: bytes) -> bool:
    text = data.decode("utf-8", "replace").lstrip("\ufeff \r\n")
    try:
        json.JSONDecoder().raw_decode(text)
    except ValueError:
        return False
    return text.startswith("[")


# What has to be among the bytes of a released turn, told without a decoder.
END = {
    "openai-responses": has(rb"response\.(completed|incomplete|failed|cancelled)"),
    "openai-chat": has(rb"\[DONE\]"),
    "anthropic": has(rb"message_stop"),
    "google-generate": is_whole_array,
    "google-interactions": has(rb"interaction\.completed"),
    "bedrock-converse": has(rb"messageStop"),
    "ollama": has(rb'"done" *: *true'),
    "cohere": has(rb"message-end"),
}
# The same for calls that run where the stream ended cleanly; two dialects then need a finish reason only.
CLEAN_END = {
    **END,
    "openai-responses": has(rb"response\.completed"),
    "openai-chat": has(rb'"finish_reason" *: *"|"finish_details"|\[DONE\]'),
    "google-generate": has(rb'"?finish_?[rR]eason"? *:'),
}
# The first goes on with its arguments after the finish reason: up to there it cannot be told from a call without
# arguments. The others send a finish reason behind each call: a server that ends cleanly there has ended its turn.
SPEAK_ON = {
    "openai-chat/chat_tool_delta_after_finish", "openai-chat/openllmetry_js-together-two-calls",
    "openai-chat/cerebras-cererebras-structured-output-tools.1",
}  # fmt: skip
WHOLE = [t for t in STREAMS if t.answer["outcome"] == "completed" and t.key not in SPEAK_ON]


def each(streams: list[RecordedStream]) -> list[object]:
    return [pytest.param(t, id=f"{number}-{t.key}") for number, t in enumerate(streams)]


def cuts(transcript: RecordedStream) -> list[bytes]:
    """The stream cut behind every event, and one and two bytes later."""
    ends = itertools.accumulate(map(len, events(transcript)), initial=0)
    return [transcript.data[:place] for end in ends for place in range(end, end + 3)]


def ended(transcript: RecordedStream, prefix: bytes, *, broken: bool) -> tuple[TurnResult, bool]:
    """The result of a cut stream, and whether the turn was released before its end."""
    decoder = TurnDecoder(transcript.dialect, **transcript.options)
    decoder.feed(prefix)
    released = decoder.released
    return (decoder.abort() if broken else decoder.eof()), released


def test_every_dialect_has_streams_with_calls_among_them() -> None:
    assert {t.dialect for t in WHOLE if t.answer["calls"]} == END.keys() == set(DIALECTS)


@pytest.mark.parametrize("transcript", each(STREAMS))
def test_no_cut_behind_an_event_gives_a_call_before_the_proper_end(transcript: RecordedStream) -> None:
    for prefix in cuts(transcript):
        result, released = ended(transcript, prefix, broken=True)
        assert END[transcript.dialect](prefix) or not released
        assert released or not result.calls
        assert CLEAN_END[transcript.dialect](prefix) or not ended(transcript, prefix, broken=False)[0].calls


@pytest.mark.parametrize("transcript", each(WHOLE))
def test_no_prefix_yields_calls_that_the_whole_would_not(transcript: RecordedStream) -> None:
    """Cut behind each brace and line as well: such a cut leaves whole JSON."""
    whole = exact(answer(decode(transcript))["calls"])
    data = transcript.data
    places = {place + 1 for place, byte in enumerate(data) if byte in b"\n\r}"} | set(map(len, cuts(transcript)))
    for prefix in (data[:at] for at in places):
        result, _ = ended(transcript, prefix, broken=False)

        assert result.calls == () or exact(answer(result)["calls"]) == whole
