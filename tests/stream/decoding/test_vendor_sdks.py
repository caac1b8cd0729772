"""The vendors' own libraries and our decoder see the same calls in every well-formed stream.

Skipped where the libraries are not installed (dependency group ``sdk``).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.stream.transcripts import CONFORMANCE, RECORDINGS, RecordedStream, decode, exact, transcripts
from tests.support.stream.wire import RENDER, WireCall
from toolonce.stream import DIALECTS, TurnDecoder, TurnResult
from toolonce.stream.turns.turn import Dialect

for library in ("anthropic", "boto3", "cohere", "google.genai", "ollama", "openai"):
    pytest.importorskip(library, reason=f"{library} is not installed: pip install --group sdk")

from tests.support.stream.vendor_sdks import CALLS, READ  # noqa: E402  it imports the libraries

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries' own deprecations and experimental notes

# What these libraries do not read, or read otherwise, in streams that have one right answer.
NOT_READ = {
    "ollama": [
        "oll_arguments_text", "oll_blank_lines", "oll_crlf", "oll_doubled_call", "oll_no_arguments", "oll_u2028",
    ],
    "anthropic": ["anth_bom", "anth_data_only", "anth_partial_json_null"],
    "openai-chat": [
        "chat_all_index0", "chat_all_index0_streamed", "chat_args_object", "chat_custom_tool", "chat_empty_data_line",
        "chat_function_call_legacy", "chat_index_drifts_no_id", "chat_index_out_of_order", "chat_index_starts_at_1",
        "chat_args_text_null", "chat_args_text_null_blanks", "chat_no_identity_one_indexed_call",
        "chat_no_index_but_id_beside_indexed", "chat_n2", "chat_no_index", "chat_no_index_streamed", "chat_ollama_two",
        "cerebras-cererebras-structured-output-tools.1", "mistral-mistral-tool-call",
    ],
    "openai-responses": [
        "resp_args_text_null",
        "resp_args_done_only_empty_output", "resp_completed_empty_output", "resp_duplicate_call_id", "resp_empty_args",
        "resp_empty_final_keeps_deltas", "resp_last_no_blank_line", "resp_replayed_item",
        "resp_same_call_id_other_args", "openai-openai-reasoning-encrypted-content.1",
    ],
    "google-generate": [
        "gem_array", "gem_array_compact_bom", "gem_array_tricky_strings", "gem_number_stop",
        "gem_data_no_space", "gem_partial_args", "gem_partial_numbers", "gem_partial_two_calls",
        "google-google-stream-no-args-tool-call",
        "google-google-stream-tool-call-array-arguments-missing-terminal-function-call",
    ],
    "bedrock-converse": [],
    "cohere": ["coh_args_null"],
    "google-interactions": ["int_args_in_start", "int_args_text_null"],
}  # fmt: skip
# Glued ids and names, placeholders kept, doubled events and calls before a hand-over listed.
MISREAD = {
    "anth_empty_object_then_args", "anth_fallback", "chat_doubled_call", "chat_empty_object_then_args",
    "chat_id_changes", "chat_id_regenerated_per_chunk", "chat_id_repeated_every_chunk",
    "chat_name_repeated_every_chunk", "chat_object_opener_then_text",
}  # fmt: skip


def well_formed(transcript: RecordedStream) -> bool:
    """Whether a proper stream ended properly, all its arguments good, and the libraries know its form."""
    name = transcript.key.split("/")[1]
    proper = transcript.kind == "stream" and transcript.end == "eof" and transcript.answer["outcome"] == "completed"
    known = name not in NOT_READ[transcript.dialect] and name not in MISREAD
    return proper and known and not transcript.answer["rejected"]


SAME = [t for t in [*transcripts(CONFORMANCE), *transcripts(RECORDINGS)] if well_formed(t)]


def ours(result: TurnResult) -> str:
    return exact([(call.name, call.call_id, call.arguments) for call in result.calls if call.kind == "function"])


@pytest.mark.parametrize("transcript", [pytest.param(t, id=t.key) for t in SAME])
def test_the_vendors_library_sees_the_same_calls(transcript: RecordedStream) -> None:
    assert ours(decode(transcript)) == exact(CALLS[transcript.dialect](transcript.data))


def test_most_well_formed_streams_are_compared() -> None:
    assert len(SAME) >= 65


objects = st.dictionaries(
    st.text(max_size=6),
    st.integers(-(2**53), 2**53)
    | st.booleans()
    | st.none()
    | st.text(max_size=10)
    | st.lists(st.integers(), max_size=3),
    max_size=4,
)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(meant=st.lists(objects, min_size=1, max_size=3), text=st.text(max_size=8), size=st.integers(1, 9))
@settings(max_examples=8)
def test_the_vendors_library_sees_the_same_calls_in_any_stream(
    dialect: Dialect, meant: list[dict[str, Any]], text: str, size: int
) -> None:
    texts = [json.dumps(arguments, ensure_ascii=False) for arguments in meant]
    calls = [
        WireCall(f"id_{number}", "f", tuple(text[at : at + size] for at in range(0, len(text), size)))
        for number, text in enumerate(texts)
    ]
    order = [number for number, call in enumerate(calls) for _ in call.fragments]
    data = RENDER[dialect](calls, order, text)
    decoder = TurnDecoder(dialect)
    decoder.feed(data)

    assert ours(decoder.eof()) == exact(CALLS[dialect](data))


RAISED = [
    "openai-chat/chat_error_after_finish", "openai-responses/resp_error_nested", "anthropic/anth_error_overloaded",
    "google-generate/gem_error_in_stream", "bedrock-converse/conv_error_message", "ollama/oll_error_after_done",
]  # fmt: skip


@pytest.mark.parametrize("transcript", [pytest.param(t, id=t.key) for t in transcripts(CONFORMANCE) if t.key in RAISED])
def test_an_error_that_a_library_raises_out_of_a_stream_fails_the_turn_as_the_bytes_do(
    transcript: RecordedStream,
) -> None:
    """Also where the turn was released before."""
    decoder = TurnDecoder(transcript.dialect)
    raised = None
    try:
        for parsed in READ[transcript.dialect](transcript.data):
            decoder.feed_event(parsed)
    except Exception as error:  # each library has its own class
        raised = error
    result = decoder.abort(raised)

    assert result.outcome == "failed"
    assert (result.error, result.calls) == (decode(transcript).error, ())


@pytest.mark.parametrize(
    "cause", [ConnectionResetError("x"), TimeoutError(), "error", None, json.JSONDecodeError("", "", 0)]
)
def test_an_exception_of_the_transport_aborts_the_turn(cause: object) -> None:
    assert TurnDecoder("ollama").abort(cause).outcome == "aborted"
