"""Why a provider would refuse a request: ids, pairing, order and completeness of calls and results, per dialect.

Each rule reads a request body as it came over the wire and returns the refusal, or None for a good request. Written
from the providers' documented behaviour, on purpose without a look at the code that makes the replies. One rule is
stricter than the providers: results come in call order.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable
from typing import Any

Body = dict[str, Any]


class RequestRefused(Exception):
    """The provider's 400."""


def demand(condition: object, refusal: str) -> None:
    if not condition:
        raise RequestRefused(refusal)


def refusal(dialect: str, body: Body) -> str | None:
    """What is wrong with the request; None where nothing is."""
    try:
        _RULES[dialect](body)
    except RequestRefused as error:
        return str(error)
    return None


def _chat(body: Body) -> None:
    messages = iter(body["messages"])
    pending: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            demand(pending, "a tool message must follow an assistant message with tool_calls")
            demand(message["tool_call_id"] == pending.pop(0), "tool messages do not answer the calls in order")
            demand(isinstance(message["content"], str), "a tool message holds text")
            continue
        demand(not pending, f"tool_call_ids did not have response messages: {pending}")
        if message["role"] == "assistant":
            pending = [_chat_call(call) for call in message.get("tool_calls", ())]
            demand(len(set(pending)) == len(pending), "duplicate tool_call id")
            _legacy(message, messages)
    demand(not pending, f"tool_call_ids did not have response messages: {pending}")


def _legacy(message: Body, rest: Iterable[Body]) -> None:
    if call := message.get("function_call"):
        _object_text(call["arguments"])
        answer = next(iter(rest), {})
        demand((answer.get("role"), answer.get("name")) == ("function", call["name"]), "function_call without answer")


def _chat_call(call: Body) -> str:
    demand(0 < len(call["id"]) <= 40, "string too long or empty: expected an id of at most 40 characters")
    if call["type"] == "function":
        _object_text(call["function"]["arguments"])
    else:
        demand(isinstance(call["custom"]["input"], str), "custom input is text")
    return str(call["id"])


def _responses(body: Body) -> None:
    pending: dict[str, str] = {}
    seen: set[str] = set()
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind in ("function_call", "custom_tool_call"):
            call_id = item["call_id"]
            demand(0 < len(call_id) <= 64, "string too long or empty: expected a call_id of at most 64 characters")
            demand(call_id not in seen, "duplicate call_id")
            _object_text(item["arguments"]) if kind == "function_call" else demand(item["input"] is not None, "input")
            seen.add(call_id)
            pending[call_id] = f"{kind}_output"
        elif kind.endswith("_output") and kind in ("function_call_output", "custom_tool_call_output"):
            if not pending and "previous_response_id" in body:
                continue  # the calls are with the server
            demand(pending, f"no tool call found for call_id {item['call_id']}")
            demand((item["call_id"], kind) == next(iter(pending.items())), "an output does not answer the next call")
            del pending[item["call_id"]]
        elif kind != "reasoning":
            demand(not pending, f"no tool output found for {list(pending)}")
    demand(not pending, f"no tool output found for {list(pending)}")


def _anthropic(body: Body) -> None:
    pending: list[str] = []
    seen: set[str] = set()
    roles = [message["role"] for message in body["messages"]]
    demand(all(a != b for a, b in itertools.pairwise(roles)), "roles must alternate")
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        demand(message["content"], "content must not be empty")
        if message["role"] == "user":
            _tool_results(blocks, pending)
            pending = []
            continue
        pending = [_tool_use(block) for block in blocks if block["type"] == "tool_use"]
        demand(len({*pending} | seen) == len(pending) + len(seen), "tool_use ids must be unique")
        seen.update(pending)
        _no_blank_text(blocks)
    demand(not pending, "tool_use ids were found without tool_result blocks")


def _tool_use(block: Body) -> str:
    demand(re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]), "tool_use.id: String should match pattern")
    demand(isinstance(block["input"], dict), "tool_use.input: Input should be an object")
    return str(block["id"])


def _tool_results(blocks: list[Body], pending: list[str]) -> None:
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    demand(answered == pending, f"tool_result blocks {answered} do not answer {pending}")
    first = [block["type"] for block in blocks[: len(pending)]]
    demand(first == ["tool_result"] * len(pending), "tool_result blocks must come first")
    for block in blocks:
        if block["type"] == "tool_result" and isinstance(block["content"], list):
            kinds = {content["type"] for content in block["content"]}
            demand(not block.get("is_error") or kinds <= {"text"}, "all content must be type text if is_error is true")
            _no_blank_text(block["content"])


def _no_blank_text(blocks: list[Body]) -> None:
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    demand(all(text.strip() for text in texts), "text content blocks must contain non-whitespace text")


def _converse(body: Body) -> None:
    """Roles alternate; one user message answers every toolUse of the message before it, each once."""
    pending: list[str] = []
    roles = [message["role"] for message in body["messages"]]
    demand(all(a != b for a, b in itertools.pairwise(roles)), "roles must alternate")
    for message in body["messages"]:
        blocks = message["content"]
        demand(isinstance(blocks, list) and blocks, "content must be a list that is not empty")
        demand(all(block["text"].strip() for block in blocks if "text" in block), "a text block is blank")
        if message["role"] == "user":
            results = [block["toolResult"] for block in blocks if "toolResult" in block]
            demand([result["toolUseId"] for result in results] == pending, f"toolResult blocks do not answer {pending}")
            for result in results:
                _converse_result(result)
            pending = []
        else:
            pending = [_converse_call(block["toolUse"]) for block in blocks if _is_converse_call(block)]
            demand(len(set(pending)) == len(pending), "doubled toolUseId")
    demand(not pending, "toolUse blocks without toolResult blocks")


def _is_converse_call(block: Body) -> bool:
    return block.get("toolUse", {"type": ""}).get("type") is None


def _converse_call(call: Body) -> str:
    demand(re.fullmatch(r"[a-zA-Z0-9_.:-]{1,64}", call["toolUseId"]), "toolUseId: pattern")
    demand(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["name"]), "name: pattern")
    demand(isinstance(call["input"], dict), "input: not an object")
    return str(call["toolUseId"])


def _converse_result(result: Body) -> None:
    demand(result.get("status") in (None, "success", "error"), "status: neither success nor error")
    for block in result["content"]:
        (kind,) = block
        demand(kind in ("text", "json", "image", "document"), f"an unknown content {kind}")
        demand(kind != "text" or block["text"].strip(), "a text block is blank")
        demand(kind != "json" or isinstance(block["json"], dict), "json: not an object")


def _generate(body: Body) -> None:
    pending: list[tuple[str, str | None]] = []
    for content in body["contents"]:
        parts = content["parts"]
        demand(parts, "parts must not be empty")
        if content["role"] == "model":
            calls = [part for part in parts if "functionCall" in part]
            pending = [(part["functionCall"]["name"], part["functionCall"].get("id")) for part in calls]
            demand(all(isinstance(part["functionCall"].get("args", {}), dict) for part in calls), "args: not an object")
            continue
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        demand(len(answers) == len(pending), "the number of function responses must equal that of the function calls")
        demand(
            [(answer["name"], answer.get("id")) for answer in answers] == pending, "responses do not match the calls"
        )
        for answer in answers:
            demand(isinstance(answer["response"], dict), "response: not an object")
            demand(answer["response"].keys() in ({"output"}, {"error"}), "response: neither output nor error")
        pending = []
    demand(not pending, "function calls without function responses")


def _interactions(body: Body) -> None:
    steps = body["input"]
    calls = {step["id"]: step["name"] for step in steps if step["type"] == "function_call"}
    results = [step for step in steps if step["type"] == "function_result"]
    demand(all(calls), "a function_call needs an id")
    demand(len(calls) == sum(step["type"] == "function_call" for step in steps), "duplicate function_call id")
    if "previous_interaction_id" not in body:
        demand([(step["call_id"], step["name"]) for step in results] == [*calls.items()], "results do not match calls")
    demand(all(isinstance(step["result"], str | list) for step in results), "result: neither text nor contents")


def _object_text(text: str) -> None:
    try:
        demand(isinstance(json.loads(text), dict), "arguments: not a JSON object")
    except ValueError:
        raise RequestRefused("arguments: invalid JSON") from None


def _ollama(body: Body) -> None:
    """Older servers and libraries know no ids: then name and order tell which call a result is for."""
    pending: list[tuple[str | None, str]] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            demand(pending, "a tool message without a call")
            demand((message.get("tool_call_id"), message["tool_name"]) == pending.pop(0), "results out of order")
            demand(isinstance(message["content"], str), "a tool message holds text")
            continue
        demand(not pending, f"calls without results: {pending}")
        for call in message.get("tool_calls", ()):
            demand(isinstance(call["function"]["arguments"], dict), "arguments are an object")
            pending.append((call.get("id"), call["function"]["name"]))
        ids = [call_id for call_id, _ in pending if call_id]
        demand(len(set(ids)) == len(ids), "duplicate call id")
    demand(not pending, f"calls without results: {pending}")


_COHERE = {
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "tool_plan", "citations"},
    "tool": {"role", "content", "tool_call_id"},
}


def _cohere(body: Body) -> None:
    """Unknown members are refused; a message has text or calls; each call is answered by a message with its id."""
    pending: list[str] = []
    for message in body["messages"]:
        demand(message.keys() <= _COHERE[message["role"]], f"unknown field: {sorted(message)}")
        if message["role"] == "tool":
            demand(pending, "a tool message without a call")
            demand(message["tool_call_id"] == pending.pop(0), "tool messages do not answer the calls in order")
            _cohere_result(message["content"])
            continue
        demand(not pending, f"calls without tool messages: {pending}")
        pending = [_cohere_call(call) for call in message.get("tool_calls", ())]
        demand(len(set(pending)) == len(pending), "duplicate tool call id")
        said = message.get("content")
        demand(said or pending, "a message needs content or calls")
        kinds = {"text"} if isinstance(said, str) else {item["type"] for item in said or ()}
        demand(not pending or "text" not in kinds, "text content is not allowed when tool_calls are provided")
    demand(not pending, f"calls without tool messages: {pending}")


def _cohere_call(call: Body) -> str:
    demand(call.keys() == {"id", "type", "function"} and call["id"], f"unknown or missing field: {sorted(call)}")
    demand(call["type"] == "function" and call["function"].keys() == {"name", "arguments"}, "function: wrong fields")
    _object_text(call["function"]["arguments"])
    return str(call["id"])


def _cohere_result(content: Any) -> None:
    demand(content and isinstance(content, str | list), "content: neither text nor blocks")
    for block in content if isinstance(content, list) else ():
        kind = block["type"]
        demand(block.keys() == {"type", kind} and kind in ("text", "document"), f"an unknown block {kind}")
        demand(kind != "text" or block["text"].strip(), "a text block is blank")
        demand(kind != "document" or isinstance(block["document"]["data"], dict), "document.data: not an object")


_RULES: dict[str, Callable[[Body], None]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "google-generate": _generate,
    "bedrock-converse": _converse,
    "ollama": _ollama,
    "cohere": _cohere,
    "google-interactions": _interactions,
}
