"""Why a provider would refuse the tools of a request, per dialect.

Written from the providers' documented or reported behaviour, on purpose without a look at the code that makes the
definitions. It reads the tools as they came over the wire.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

Tool = dict[str, Any]


def refusal(dialect: str, body: dict[str, Any]) -> str | None:
    """What is wrong with the tools of the request; None where nothing is."""
    return next(_RULES[dialect](body), None)


def _openai(name: str, function: Tool) -> Iterator[str]:
    schema = function["parameters"]
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        yield "Invalid name: string does not match pattern"
    yield from _plain_object(schema, "anyOf", "oneOf", "allOf", "enum", "not")
    for part in _everywhere(schema):
        if part.get("type") == "array" and "items" not in part:
            yield "array schema missing items"
    if function.get("strict"):
        yield from _strict(schema)


def _strict(schema: Any) -> Iterator[str]:
    for part in _everywhere(schema):
        if part.get("type") == "object" and part.get("additionalProperties") is not False:
            yield "'additionalProperties' is required to be supplied and to be false"
        if part.get("type") == "object" and set(part.get("properties", {})) != set(part.get("required", ())):
            yield "'required' is required to be supplied and to be an array including every key in properties"
        for word in ("default", "minLength", "maxLength", "oneOf", "allOf", "uniqueItems", "patternProperties"):
            if word in part:
                yield f"{word!r} is not permitted"
        if "$ref" in part and len(part) > 1:
            yield "$ref cannot have keywords beside it"


def _plain_object(schema: Tool, *refused: str) -> Iterator[str]:
    if schema.get("type") != "object" or "properties" not in schema:
        yield "schema must have type 'object'"
    if set(schema) & set(refused):
        yield f"schema must not have {refused} at the top level"


def _everywhere(value: Any) -> Iterator[Tool]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _everywhere(inner)


def _chat(body: Tool) -> Iterator[str]:
    for tool in body.get("tools", ()):
        if len(tool["function"].get("description", "")) > 1024:
            yield "Invalid function.description: string too long. Expected a string with maximum length 1024"
        yield from _openai(tool["function"]["name"], tool["function"])


def _responses(body: Tool) -> Iterator[str]:
    for tool in body.get("tools", ()):
        yield from _openai(tool["name"], tool)
        if "strict" not in tool:
            yield "Missing required parameter: strict"


def _anthropic(body: Tool) -> Iterator[str]:
    for tool in body.get("tools", ()):
        schema = tool["input_schema"]
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", tool["name"]):
            yield "name: String should match pattern"
        if not all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in schema["properties"]):
            yield "input_schema.properties: Property keys should match pattern"
        yield from _plain_object(schema, "anyOf", "oneOf", "allOf")


def _google_name(name: str) -> Iterator[str]:
    if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}", name):
        yield "Invalid function name. Must start with a letter or an underscore."


def _google_refs(schema: Any) -> Iterator[str]:
    for part in _everywhere(schema):
        if "$ref" in part and set(part) - {"$ref", "description", "default"}:
            yield "$ref was set alongside unsupported fields"


def _generate(body: Tool) -> Iterator[str]:
    for declared in (one for tool in body.get("tools", ()) for one in tool["functionDeclarations"]):
        yield from _google_name(declared["name"])
        if "parameters" in declared:
            yield "Unknown name in parameters: Cannot find field."
        yield from _plain_object(declared["parametersJsonSchema"])
        yield from _google_refs(declared["parametersJsonSchema"])


def _interactions(body: Tool) -> Iterator[str]:
    for tool in body.get("tools", ()):
        yield from _google_name(tool["name"])
        yield from _google_refs(tool["parameters"])


def _converse(body: Tool) -> Iterator[str]:
    tools = body.get("toolConfig", {"tools": [1]})["tools"]
    if not tools:
        yield "toolConfig.tools: expected at least one"
    for tool in (tool["toolSpec"] for tool in tools if tool != 1):
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"]):
            yield "name: pattern"
        if not tool.get("description", "x").strip():
            yield "description: at least one character"
        yield from _plain_object(tool["inputSchema"]["json"], "anyOf", "oneOf", "allOf", "$schema", "$id")


def _ollama(body: Tool) -> Iterator[str]:
    for tool in body.get("tools", ()):
        if tool["function"]["parameters"]["type"] != "object":
            yield "type must be object"


def _cohere(body: Tool) -> Iterator[str]:
    for tool in body.get("tools", ()):
        if set(tool) != {"type", "function"} or not set(tool["function"]) <= {"name", "description", "parameters"}:
            yield "unknown field"


_RULES: dict[str, Callable[[Tool], Iterator[str]]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "google-generate": _generate,
    "google-interactions": _interactions,
    "bedrock-converse": _converse,
    "ollama": _ollama,
    "cohere": _cohere,
}
