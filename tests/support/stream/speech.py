"""What a provider streams, in each dialect: a text, or calls, said properly."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tests.support.stream.wire import WireCall, bedrock_converse, cohere, ollama

Calls = Iterable[tuple[str, str, dict[str, Any]]]
"""Name, id, arguments."""


def stream(dialect: str, turn_id: str, calls: Calls = (), text: str = "") -> bytes:
    """The body of a streamed response that ended properly, with these calls, or this text."""
    return b"".join(_WAYS[dialect](turn_id, list(calls), text))


def _event(data: dict[str, Any], name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def _named(data: dict[str, Any]) -> bytes:
    return _event(data, data["type"])


def _anthropic(turn_id: str, calls: list[Any], text: str) -> Iterable[bytes]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": turn_id, "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    yield _named({"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}})
    said = [({"type": "text", "text": ""}, {"type": "text_delta", "text": text})] if text else []
    blocks = said + [
        (
            {"type": "tool_use", "id": call_id, "name": name, "input": {}},
            {"type": "input_json_delta", "partial_json": json.dumps(arguments)},
        )
        for name, call_id, arguments in calls
    ]
    for index, (block, delta) in enumerate(blocks):
        yield _named({"type": "content_block_start", "index": index, "content_block": block})
        yield _named({"type": "content_block_delta", "index": index, "delta": delta})
        yield _named({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    yield _named({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 7}})
    yield _named({"type": "message_stop"})


def _chat(turn_id: str, calls: list[Any], text: str) -> Iterable[bytes]:
    base = {"id": turn_id, "object": "chat.completion.chunk", "created": 1, "model": "m"}
    delta: dict[str, Any] = {"role": "assistant", "content": text or None}
    yield _event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    for index, (name, call_id, arguments) in enumerate(calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        piece = {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}
        yield _event({**base, "choices": [{"index": 0, "delta": piece, "finish_reason": None}]})
    reason = "tool_calls" if calls else "stop"
    yield _event({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    yield b"data: [DONE]\n\n"


def _responses(turn_id: str, calls: list[Any], text: str) -> Iterable[bytes]:
    numbers = iter(range(1000))
    response = {"id": turn_id, "object": "response", "created_at": 1, "model": "m", "status": "in_progress"}
    settings = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}

    def event(kind: str, **more: Any) -> bytes:
        return _named({"type": kind, "sequence_number": next(numbers), **more})

    items: list[dict[str, Any]] = []
    if text:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content})
    for index, (name, call_id, arguments) in enumerate(calls):
        items.append({
            "type": "function_call", "id": f"fc_{index}", "call_id": call_id, "name": name,
            "arguments": json.dumps(arguments), "status": "completed",
        })  # fmt: skip
    yield event("response.created", response={**response, "output": [], **settings})
    for index, item in enumerate(items):
        yield event("response.output_item.added", output_index=index, item={**item, "status": "in_progress"})
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response={**response, "status": "completed", "output": items, **settings})


def _generate(turn_id: str, calls: list[Any], text: str) -> Iterable[bytes]:
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    parts += [{"functionCall": {"name": name, "id": call_id, "args": args}} for name, call_id, args in calls]
    yield _event({"responseId": turn_id, "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}}]})
    end = {"index": 0, "content": {"role": "model", "parts": []}, "finishReason": "STOP"}
    yield _event({"responseId": turn_id, "candidates": [end]})


def _interactions(turn_id: str, calls: list[Any], text: str) -> Iterable[bytes]:
    started = {"id": turn_id, "status": "in_progress", "model": "m", "object": "interaction"}
    yield _event({"event_type": "interaction.created", "interaction": started}, "interaction.created")
    steps: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if text:
        steps.append(({"type": "model_output"}, {"type": "text", "text": text}))
    steps += [
        (
            {"type": "function_call", "id": call_id, "name": name, "arguments": {}},
            {"type": "arguments_delta", "arguments": json.dumps(arguments)},
        )
        for name, call_id, arguments in calls
    ]
    for index, (step, delta) in enumerate(steps):
        yield _event({"event_type": "step.start", "index": index, "step": step}, "step.start")
        yield _event({"event_type": "step.delta", "index": index, "delta": delta}, "step.delta")
        yield _event({"event_type": "step.stop", "index": index}, "step.stop")
    done = {"id": turn_id, "status": "requires_action" if calls else "completed", "object": "interaction"}
    yield _event({"event_type": "interaction.completed", "interaction": done}, "interaction.completed")
    yield b"event: done\ndata: [DONE]\n\n"


def _converse(turn_id: str, calls: list[Any], text: str) -> Iterable[bytes]:
    wire = [WireCall(call_id, name, (json.dumps(arguments),)) for name, call_id, arguments in calls]
    yield bedrock_converse(wire, range(len(wire)), text)


def _ollama(turn_id: str, calls: list[Any], text: str) -> Iterable[bytes]:
    wire = [WireCall(call_id, name, (json.dumps(arguments),)) for name, call_id, arguments in calls]
    yield ollama(wire, range(len(wire)), text)


def _cohere(turn_id: str, calls: list[Any], text: str) -> Iterable[bytes]:
    wire = [WireCall(call_id, name, (json.dumps(arguments),)) for name, call_id, arguments in calls]
    order = [number for number, call in enumerate(wire) if call.fragments]
    yield cohere(wire, order, text).replace(b'"coh_1"', json.dumps(turn_id).encode())


_WAYS = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "google-generate": _generate,
    "bedrock-converse": _converse,
    "ollama": _ollama,
    "cohere": _cohere,
    "google-interactions": _interactions,
}
