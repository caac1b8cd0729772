"""The vendors' own libraries take our histories and replies: by their types, and over the wire to a judging server.

Skipped where the libraries are not installed (dependency group ``sdk``).
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter

from tests.support.stream.provider_server import ProviderServer
from tests.support.stream.transcripts import CONFORMANCE, RecordedStream, decode, transcripts
from tests.support.stream.turns import Asked, outcomes, request, turn
from toolonce.store.model.outcomes import Outcome
from toolonce.store.model.parts import FilePart, ImagePart, JsonPart, Parts, TextPart
from toolonce.store.model.states import State
from toolonce.stream.decoding.whole_body import decode_body
from toolonce.stream.dialects.bedrock_converse.replies import for_boto3
from toolonce.stream.harness.history import history, replies
from toolonce.stream.turns.turn import DIALECTS, Dialect

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries' own deprecations and experimental notes

ASKED = [
    Asked("look", "call_a", {"q": "é"}),
    Asked("bad", "fn.bad:1", rejected="invalid_json"),
    Asked("book", None, {"n": 2**40}),
    Asked("book", "call_a", {"n": 1}),
    Asked("now", "x" * 65),
]
RICH = Parts(
    (
        TextPart("two"),
        JsonPart({"n": 1}),
        ImagePart("image/png", data="iVBO"),
        ImagePart("image/jpeg", url="https://e.test/a.jpg"),
        FilePart("application/pdf", data="JVBE", name="a.pdf"),
        FilePart("text/plain", data="aGk="),
    )
)


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


def body(dialect: Dialect, source: Dialect) -> dict[str, Any]:
    """A request whose turn ended in every way a call can: rich, plain, refused, unknown, still running."""
    asked = turn(source, ASKED)
    rich, refused, unknown, running, plain = outcomes(asked, value=RICH.to_json())
    ended: list[Outcome] = [
        rich,
        refused,
        *outcomes(asked, state=State.UNKNOWN)[2:3],
        *outcomes(asked, state=State.RUNNING)[3:4],
        *outcomes(asked, value={"ok": True})[4:],
    ]
    assert [unknown.position, running.position, plain.position] == [2, 3, 4]
    messages = replies(ended, dialect, turn_id=asked.turn_id, came_in=source)
    return request(dialect, [*history(asked, dialect), *messages])


def passes_types(kind: Any, messages: list[dict[str, Any]]) -> None:
    """Valid by the library's types, and nothing in it that they do not know: such fields would be dropped."""
    assert drawn(TypeAdapter(kind).validate_python(messages)) == messages


def drawn(value: Any) -> Any:
    """The value with its lazy iterables drawn to the end; they check their members only then."""
    match value:
        case dict():
            return {name: drawn(member) for name, member in value.items()}
        case list() | tuple() | Iterator():
            return [drawn(member) for member in value]
        case _:
            return value


def camel(value: Any) -> Any:
    """The value with camel-case members. The service takes both spellings, and this library sends some in the other."""
    if isinstance(value, list):
        return [camel(member) for member in value]
    if not isinstance(value, dict):
        return value
    return {re.sub("_(.)", lambda match: match[1].upper(), name): camel(member) for name, member in value.items()}


SOURCES = pytest.mark.parametrize("source", DIALECTS)


@SOURCES
def test_openai_takes_a_chat_history(server: ProviderServer, source: Dialect) -> None:
    openai = pytest.importorskip("openai")
    from openai.types.chat import ChatCompletionMessageParam

    messages = body("openai-chat", source)["messages"]
    passes_types(list[ChatCompletionMessageParam], messages)
    with openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as client:
        answer = client.chat.completions.create(model="m", messages=messages)

    assert answer.choices[0].message.content == "Done."
    assert server.requests == [("openai-chat", {"model": "m", "messages": messages})]


@SOURCES
def test_openai_takes_responses_items(server: ProviderServer, source: Dialect) -> None:
    openai = pytest.importorskip("openai")
    from openai.types.responses import ResponseInputItemParam

    items = body("openai-responses", source)["input"]
    passes_types(list[ResponseInputItemParam], items)
    with openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as client:
        answer = client.responses.create(model="m", input=items)

    assert answer.output_text == "Done."
    assert server.requests == [("openai-responses", {"model": "m", "input": items})]


@SOURCES
def test_anthropic_takes_a_history(server: ProviderServer, source: Dialect) -> None:
    anthropic = pytest.importorskip("anthropic")
    from anthropic.types import MessageParam

    messages = body("anthropic", source)["messages"]
    passes_types(list[MessageParam], messages)
    with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as client:
        answer = client.messages.create(model="m", max_tokens=9, messages=messages)

    assert answer.content[0].text == "Done."
    assert server.requests == [("anthropic", {"model": "m", "max_tokens": 9, "messages": messages})]


@SOURCES
def test_boto3_takes_a_converse_history(server: ProviderServer, source: Dialect) -> None:
    pytest.importorskip("boto3")

    messages = body("bedrock-converse", source)["messages"]
    boto3_takes(messages)
    answer = converse_client(server.url).converse(modelId="m", messages=for_boto3(messages))

    assert decode_body(json.dumps(answer, default=str).encode(), "bedrock-converse").text == "Done."
    assert server.requests == [("bedrock-converse", {"messages": messages})]


@SOURCES
def test_ollama_takes_a_chat_history(server: ProviderServer, source: Dialect) -> None:
    ollama = pytest.importorskip("ollama")

    messages = body("ollama", source)["messages"]
    answer = ollama.Client(host=server.url).chat(model="m", messages=messages)

    assert answer.message.content == "Done."
    [(dialect, sent)] = server.requests
    assert dialect == "ollama"
    assert [_known(message) for message in sent["messages"]] == [_known(message) for message in messages]


def _known(message: dict[str, Any]) -> dict[str, Any]:
    """Without ids, which release 0.6.3 of this library does not know and leaves out; empty members aside."""
    calls = [{"function": call["function"]} for call in message.get("tool_calls", ())]
    kept = {name: it for name, it in message.items() if name != "tool_call_id" and it is not None}
    return kept | ({"tool_calls": calls} if calls else {})


@SOURCES
def test_cohere_takes_a_chat_history(server: ProviderServer, source: Dialect) -> None:
    cohere = pytest.importorskip("cohere")

    messages = body("cohere", source)["messages"]
    typed = types_of("cohere").validate_python(messages)
    assert [message.model_dump(exclude_unset=True) for message in typed] == messages
    client = cohere.ClientV2("none", base_url=server.url)
    answer = client.chat(model="m", messages=messages)

    assert answer.message.content[0].text == "Done."
    assert server.refusals == []
    assert server.requests[0][1]["messages"] == messages


def boto3_takes(messages: list[dict[str, Any]]) -> None:
    """Valid by the service's model, by which the library judges and writes requests."""
    validate = pytest.importorskip("botocore.validate")
    shape = converse_client("http://none.test").meta.service_model.operation_model("Converse").input_shape
    report = validate.ParamValidator().validate({"modelId": "m", "messages": for_boto3(messages)}, shape)
    assert not report.has_errors(), report.generate_report()


def converse_client(url: str) -> Any:
    boto3 = pytest.importorskip("boto3")
    dummy = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}
    return boto3.client("bedrock-runtime", "us-east-1", endpoint_url=url, **dummy)


@SOURCES
def test_google_takes_generate_contents(server: ProviderServer, source: Dialect) -> None:
    genai = pytest.importorskip("google.genai")

    contents = body("google-generate", source)["contents"]
    typed = [genai.types.Content.model_validate(content) for content in contents]
    options = genai.types.HttpOptions(base_url=server.url)
    with genai.Client(api_key="none", http_options=options) as client:
        answer = client.models.generate_content(model="m", contents=typed)

    assert answer.text == "Done."
    assert server.refusals == []
    assert camel(server.requests[0][1]["contents"]) == contents


@SOURCES
def test_google_takes_interaction_steps(server: ProviderServer, source: Dialect) -> None:
    genai = pytest.importorskip("google.genai")

    steps = body("google-interactions", source)["input"]
    kinds = {step["type"] for step in steps}
    parsed = TypeAdapter(genai.interactions.InteractionsInput).validate_python(steps)
    assert {step.type for step in parsed} == kinds, "an unknown shape would be parsed as UNKNOWN"
    with genai.Client(api_key="none", http_options=genai.types.HttpOptions(base_url=server.url)) as client:
        client.interactions.create(model="m", input=steps, store=False)

    assert server.refusals == []
    assert server.requests[0][1]["input"] == steps


def test_results_alone_are_taken_where_the_server_keeps_the_calls(server: ProviderServer) -> None:
    openai, genai = pytest.importorskip("openai"), pytest.importorskip("google.genai")
    made = turn("openai-responses")
    items = replies(outcomes(made, value=1), "openai-responses", turn_id="turn_1")
    steps = replies(outcomes(made, value=1), "google-interactions", turn_id="turn_1", came_in="openai-responses")

    with openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as client:
        client.responses.create(model="m", input=items, previous_response_id="turn_1")
    with genai.Client(api_key="none", http_options=genai.types.HttpOptions(base_url=server.url)) as client:
        client.interactions.create(model="m", input=steps, previous_interaction_id="turn_1")

    assert server.refusals == []
    assert [body["input"] for _, body in server.requests] == [items, steps]


# Items that the libraries' stable types do not know: a beta's blocks, and inventions that decoders must pass over.
BEYOND_TYPES = {"anth_fallback", "anth_mcp_tool", "resp_search_and_unknown_items"}
COMPLETED = [t for t in transcripts(CONFORMANCE) if t.answer["outcome"] == "completed"]


@pytest.mark.parametrize(
    "transcript",
    [pytest.param(t, id=t.key) for t in COMPLETED if t.key.split("/")[1] not in BEYOND_TYPES],
)
def test_the_libraries_types_take_the_history_after_every_transcript(transcript: RecordedStream) -> None:
    made = decode(transcript)
    messages = [*history(made, made.dialect), *replies(outcomes(made, value=1), made.dialect, turn_id="t")]

    if made.dialect == "bedrock-converse":
        boto3_takes(messages)
    else:
        drawn(types_of(made.dialect).validate_python(messages))


TYPES = {
    "ollama": ("ollama", "Message"),
    "cohere": ("cohere", "ChatMessageV2"),
    "openai-chat": ("openai.types.chat", "ChatCompletionMessageParam"),
    "openai-responses": ("openai.types.responses", "ResponseInputItemParam"),
    "anthropic": ("anthropic.types", "MessageParam"),
    "google-generate": ("google.genai.types", "Content"),
    "google-interactions": ("google.genai.interactions", "Step"),
}


@functools.cache
def types_of(dialect: Dialect) -> TypeAdapter[Any]:
    module, name = TYPES[dialect]
    kind: Any = getattr(pytest.importorskip(module), name)
    return TypeAdapter(list[kind])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_judging_server_refuses_what_lacks_a_result(dialect: Dialect) -> None:
    """Without this the tests above could not fail."""
    whole = body(dialect, dialect)
    (name,) = whole
    server = ProviderServer()
    try:
        taken = server.answer(dialect, whole)
        refused = server.answer(dialect, {name: whole[name][:-1]})
    finally:
        server._http.server_close()

    assert (taken.status, refused.status) == (200, 400)
    assert b"invalid_request_error" in refused.body
