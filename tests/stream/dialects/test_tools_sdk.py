"""The vendors' own libraries take our tool definitions, and what a model writes by them is admitted.

Skipped where the libraries are not installed (dependency group ``sdk``).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter

from tests.support.stream.offered import tools
from tests.support.stream.provider_server import ProviderServer
from tests.support.stream.tool_rules import refusal
from toolonce.stream import DIALECTS, Dialect
from toolonce.stream.dialects.tools import ToolDefinitions

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries' own deprecations and experimental notes
ASKED: Any = [{"role": "user", "content": "x"}]


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


def plain(value: Any) -> Any:
    """As JSON, members without a value left out."""
    match value:
        case dict():
            return {name: plain(member) for name, member in value.items() if member is not None}
        case list() | tuple():
            return [plain(member) for member in value]
        case _:
            return value


def typed(library: str, name: str, made: ToolDefinitions) -> Any:
    """The definitions as the library's own type reads them, as JSON again."""
    kind = functools.reduce(getattr, name.split("."), pytest.importorskip(library))
    adapter = TypeAdapter(list[kind])  # type: ignore[valid-type]
    return plain(adapter.dump_python(adapter.validate_python(list(made)), mode="json", by_alias=True))


def ask_openai_responses(url: str, made: ToolDefinitions) -> None:
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0) as client:
        client.responses.create(**made.request({"model": "m", "input": ASKED}))


def ask_openai_chat(url: str, made: ToolDefinitions) -> None:
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0) as client:
        client.chat.completions.create(**made.request({"model": "m", "messages": ASKED}))


def ask_anthropic(url: str, made: ToolDefinitions) -> None:
    anthropic = pytest.importorskip("anthropic")
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as client:
        client.messages.create(**made.request({"model": "m", "max_tokens": 9, "messages": ASKED}))


def ask_google_generate(url: str, made: ToolDefinitions) -> None:
    genai = pytest.importorskip("google.genai")
    with genai.Client(api_key="none", http_options=genai.types.HttpOptions(base_url=url)) as client:
        client.models.generate_content(model="m", contents="x", config={"tools": made})


def ask_google_interactions(url: str, made: ToolDefinitions) -> None:
    genai = pytest.importorskip("google.genai")
    with genai.Client(api_key="none", http_options=genai.types.HttpOptions(base_url=url)) as client:
        client.interactions.create(**made.request({"model": "m", "input": [], "store": False}))


def ask_bedrock_converse(url: str, made: ToolDefinitions) -> None:
    boto3 = pytest.importorskip("boto3")
    dummy = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}
    client = boto3.client("bedrock-runtime", "us-east-1", endpoint_url=url, **dummy)
    messages = [{"role": "user", "content": [{"text": "x"}]}]
    client.converse(**made.request({"modelId": "anthropic.claude-x", "messages": messages}))


def ask_ollama(url: str, made: ToolDefinitions) -> None:
    ollama = pytest.importorskip("ollama")
    ollama.Client(host=url).chat(model="m", messages=ASKED, tools=made)


def ask_cohere(url: str, made: ToolDefinitions) -> None:
    cohere = pytest.importorskip("cohere")
    cohere.ClientV2("none", base_url=url).chat(model="m", messages=ASKED, tools=made)


ASK: dict[Dialect, Callable[[str, ToolDefinitions], None]] = {
    "openai-responses": ask_openai_responses,
    "openai-chat": ask_openai_chat,
    "anthropic": ask_anthropic,
    "google-generate": ask_google_generate,
    "google-interactions": ask_google_interactions,
    "bedrock-converse": ask_bedrock_converse,
    "ollama": ask_ollama,
    "cohere": ask_cohere,
}
# boto3 has no types; its own validation of a request runs when it sends one.
TYPES: dict[Dialect, tuple[str, str]] = {
    "openai-responses": ("openai.types.responses", "FunctionToolParam"),
    "openai-chat": ("openai.types.chat", "ChatCompletionToolParam"),
    "anthropic": ("anthropic.types", "ToolParam"),
    "google-generate": ("google.genai.types", "Tool"),
    "google-interactions": ("google.genai.interactions", "Function"),
    "cohere": ("cohere", "ToolV2"),
}


@pytest.mark.parametrize("dialect", TYPES)
def test_the_librarys_own_type_reads_a_definition_and_leaves_nothing_out(dialect: Dialect) -> None:
    made = tools.definitions(dialect)

    assert typed(*TYPES[dialect], made) == plain(list(made))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_library_sends_the_definitions_as_they_are(server: ProviderServer, dialect: Dialect) -> None:
    made = tools.definitions(dialect)

    ASK[dialect](server.url, made)

    [(seen, sent)] = server.requests
    sent = spelt(sent) if dialect == "google-generate" else sent
    assert seen == dialect
    assert refusal(dialect, sent) is None
    listed = sent["toolConfig"]["tools"] if dialect == "bedrock-converse" else sent["tools"]
    if dialect == "ollama":
        assert [shown(tool) for tool in listed] == [shown(tool) for tool in made]
    else:
        assert plain(listed) == plain(made)


def spelt(body: dict[str, Any]) -> dict[str, Any]:
    """With Google's documented names; the service takes both spellings, and its library sends the other one."""
    text = json.dumps(body).replace('"parameters_json_schema"', '"parametersJsonSchema"')
    spelt_out: dict[str, Any] = json.loads(text.replace('"function_declarations"', '"functionDeclarations"'))
    return spelt_out


def shown(tool: dict[str, Any]) -> Any:
    """What release 0.6.3 of Ollama's library knows of a tool; members without a value aside."""
    function = tool["function"]
    known = {
        name: plain({key: part.get(key) for key in ("type", "description", "enum", "items")})
        for name, part in function["parameters"].get("properties", {}).items()
    }
    return [function["name"], function.get("description"), known, function["parameters"].get("required")]


@pytest.mark.parametrize("dialect", ["openai-responses", "openai-chat", "anthropic", "bedrock-converse"])
def test_the_library_sends_the_option_that_forbids_parallel_calls(server: ProviderServer, dialect: Dialect) -> None:
    made = tools.definitions(dialect)
    assert made.unordered

    ASK[dialect](server.url, made)

    assert '"parallel_tool_calls": false' in json.dumps(server.requests) or (
        '"disable_parallel_tool_use": true' in json.dumps(server.requests)
    )
