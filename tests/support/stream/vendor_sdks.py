"""The vendors' own libraries reading a stream that a transport in this process hands them: no network, no keys.

Decides how each library is driven. Import it only behind ``pytest.importorskip``: the libraries are optional.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import anthropic
import boto3
import cohere
import httpx
import httpx2
import ollama
import openai
from botocore.eventstream import EventStream
from botocore.parsers import EventStreamJSONParser
from google import genai
from google.genai import types
from urllib3 import HTTPResponse

Call = tuple[str, str | None, Any]


class _Canned:
    """What the next request is answered with. The clients are made once, since making one costs more than a stream."""

    data = b""


def _answer(request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=_Canned.data)


@functools.cache
def _openai_client() -> openai.OpenAI:
    http = httpx2.Client(transport=httpx2.MockTransport(_answer))
    return openai.OpenAI(api_key="none", base_url="http://sdk.test", http_client=http, max_retries=0)


@functools.cache
def _anthropic_client() -> anthropic.Anthropic:
    http = httpx2.Client(transport=httpx2.MockTransport(_answer))
    return anthropic.Anthropic(api_key="none", base_url="http://sdk.test", http_client=http, max_retries=0)


@functools.cache
def _google_client() -> genai.Client:
    client_args = {"transport": httpx2.MockTransport(_answer)}
    return genai.Client(
        api_key="none", http_options=types.HttpOptions(base_url="http://sdk.test", client_args=client_args)
    )


def _openai(data: bytes) -> openai.OpenAI:
    _Canned.data = data
    return _openai_client()


def _anthropic(data: bytes) -> anthropic.Anthropic:
    _Canned.data = data
    return _anthropic_client()


def _google(data: bytes) -> genai.Client:
    _Canned.data = data
    return _google_client()


def read_responses(data: bytes) -> Iterator[Any]:
    return iter(_openai(data).responses.create(model="m", input="x", stream=True))


def read_chat(data: bytes) -> Iterator[Any]:
    asked: Any = [{"role": "user", "content": "x"}]
    return iter(_openai(data).chat.completions.create(model="m", messages=asked, stream=True))


def read_anthropic(data: bytes) -> Iterator[Any]:
    asked: Any = [{"role": "user", "content": "x"}]
    return iter(_anthropic(data).messages.create(model="m", max_tokens=9, messages=asked, stream=True))


def read_generate(data: bytes) -> Iterator[Any]:
    return iter(_google(data).models.generate_content_stream(model="m", contents="x"))


def read_interactions(data: bytes) -> Iterator[Any]:
    return iter(_google(data).interactions.create(model="m", input="x", stream=True))


def read_converse(data: bytes) -> Iterator[Any]:
    raw = HTTPResponse(body=BytesIO(data), preload_content=False)
    model = _converse_client().meta.service_model.operation_model("ConverseStream")
    parser = EventStreamJSONParser()
    return iter(EventStream(raw, model.output_shape.members["stream"], parser, "ConverseStream"))


@functools.cache
def _converse_client() -> Any:
    return boto3.client("bedrock-runtime", "us-east-1", aws_access_key_id="none", aws_secret_access_key="none")


def read_ollama(data: bytes) -> Iterator[Any]:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "application/x-ndjson"}, content=data)

    client = ollama.Client(host="http://sdk.test", transport=httpx.MockTransport(answer))
    return iter(client.chat(model="m", messages=[], stream=True))


def read_cohere(data: bytes) -> Iterator[Any]:
    _Canned.data = data
    return iter(_cohere_client().chat_stream(model="m", messages=[cohere.UserChatMessageV2(content="x")]))


@functools.cache
def _cohere_client() -> cohere.ClientV2:
    def respond(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=_Canned.data)

    http = httpx.Client(transport=httpx.MockTransport(respond))
    return cohere.ClientV2("none", base_url="http://sdk.test", httpx_client=http)


READ: dict[str, Callable[[bytes], Iterator[Any]]] = {
    "openai-responses": read_responses,
    "openai-chat": read_chat,
    "anthropic": read_anthropic,
    "google-generate": read_generate,
    "bedrock-converse": read_converse,
    "ollama": read_ollama,
    "cohere": read_cohere,
    "google-interactions": read_interactions,
}


def calls_responses(data: bytes) -> list[Call]:
    with _openai(data).responses.stream(model="m", input="x") as stream:
        output = stream.get_final_response().output
    return [(item.name, item.call_id, json.loads(item.arguments)) for item in output if item.type == "function_call"]


def calls_chat(data: bytes) -> list[Call]:
    asked: Any = [{"role": "user", "content": "x"}]
    with _openai(data).chat.completions.stream(model="m", messages=asked) as stream:
        message = stream.get_final_completion().choices[0].message
    found: list[Any] = message.tool_calls or []
    return [(call.function.name, call.id, json.loads(call.function.arguments or "{}")) for call in found]


def calls_anthropic(data: bytes) -> list[Call]:
    asked: Any = [{"role": "user", "content": "x"}]
    with _anthropic(data).messages.stream(model="m", max_tokens=9, messages=asked) as stream:
        content = stream.get_final_message().content
    return [(block.name, block.id, block.input) for block in content if block.type == "tool_use"]


def calls_generate(data: bytes) -> list[Call]:
    found = [call for chunk in read_generate(data) for call in chunk.function_calls or []]
    return [(call.name, call.id, call.args or {}) for call in found]


def calls_interactions(data: bytes) -> list[Call]:
    """This library has no accumulator: the steps are joined here, by its own typed events."""
    steps: dict[int, tuple[str, str, list[str]]] = {}
    for event in read_interactions(data):
        if event.event_type == "step.start" and event.step.type == "function_call":
            steps[event.index] = (event.step.name, event.step.id, [])
        elif event.event_type == "step.delta" and event.delta.type == "arguments_delta":
            steps[event.index][2].append(event.delta.arguments)
    return [(name, call_id, json.loads("".join(parts) or "{}")) for name, call_id, parts in steps.values()]


def calls_converse(data: bytes) -> list[Call]:
    """This library has no accumulator: the blocks are joined here, by its own parsed events."""
    blocks: dict[int, tuple[str, str, list[str]]] = {}
    for event in read_converse(data):
        start, delta = event.get("contentBlockStart"), event.get("contentBlockDelta")
        if start and "toolUse" in start["start"] and "type" not in start["start"]["toolUse"]:
            use = start["start"]["toolUse"]
            blocks[start["contentBlockIndex"]] = (use["name"], use["toolUseId"], [])
        elif delta and delta["contentBlockIndex"] in blocks:
            blocks[delta["contentBlockIndex"]][2].append(delta["delta"]["toolUse"]["input"])
    return [(name, call_id, json.loads("".join(parts) or "{}")) for name, call_id, parts in blocks.values()]


def calls_ollama(data: bytes) -> list[Call]:
    """This library (0.6.3) has no place for a call's id; it is taken from the wire."""
    lines = [json.loads(line) for line in data.split(b"\n") if line.strip()]
    ids = iter([call.get("id") or None for line in lines for call in line["message"].get("tool_calls", ())])
    return [
        (call.function.name, next(ids), dict(call.function.arguments))
        for part in read_ollama(data)
        for call in part.message.tool_calls or ()
    ]


def calls_cohere(data: bytes) -> list[Call]:
    """This library has no accumulator: the calls are joined here, by its own typed events."""
    found: dict[int, tuple[str, str, list[str]]] = {}
    for part in read_cohere(data):
        if part.type == "tool-call-start":
            call = part.delta.message.tool_calls
            found[part.index] = (call.function.name, call.id, [call.function.arguments or ""])
        elif part.type == "tool-call-delta":
            found[part.index][2].append(part.delta.message.tool_calls.function.arguments)
    return [(name, call_id, json.loads("".join(parts) or "{}")) for name, call_id, parts in found.values()]


CALLS: dict[str, Callable[[bytes], list[Call]]] = {
    "openai-responses": calls_responses,
    "openai-chat": calls_chat,
    "anthropic": calls_anthropic,
    "google-generate": calls_generate,
    "bedrock-converse": calls_converse,
    "ollama": calls_ollama,
    "cohere": calls_cohere,
    "google-interactions": calls_interactions,
}
