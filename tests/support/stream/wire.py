"""Well-formed streams of every dialect, built from calls whose argument texts come in fragments."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.stream import event_stream


@dataclass(frozen=True)
class WireCall:
    """A call as a server would stream it."""

    call_id: str
    name: str
    fragments: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(self.fragments)


# Which call speaks next: a sequence of call numbers, each as often as the call has fragments.
Order = Sequence[int]


def event(payload: dict[str, Any], name: str | None = None) -> bytes:
    line = f"event: {name}\n".encode() if name else b""
    return line + b"data: " + json.dumps(payload).encode() + b"\n\n"


def anthropic(calls: Sequence[WireCall], order: Order, text: str = "") -> bytes:
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
    }
    usage: dict[str, Any] = {"input_tokens": 1, "output_tokens": 1}
    frames: list[dict[str, Any]] = [{"type": "message_start", "message": {**message, "usage": usage}}]
    if text:
        frames += [
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            {"type": "content_block_stop", "index": 0},
        ]
    first = 1 if text else 0
    for at, call in enumerate(calls, first):
        block = {"type": "tool_use", "id": call.call_id, "name": call.name, "input": {}}
        frames.append({"type": "content_block_start", "index": at, "content_block": block})
    for number, fragment in _spoken(calls, order):
        delta = {"type": "input_json_delta", "partial_json": fragment}
        frames.append({"type": "content_block_delta", "index": first + number, "delta": delta})
    frames += [{"type": "content_block_stop", "index": first + at} for at in range(len(calls))]
    reason = "tool_use" if calls else "end_turn"
    usage = {"output_tokens": 5}
    frames.append({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage})
    frames.append({"type": "message_stop"})
    return b"".join(event(frame, frame["type"]) for frame in frames)


def openai_responses(calls: Sequence[WireCall], order: Order, text: str = "") -> bytes:
    frames: list[dict[str, Any]] = [{"type": "response.created", "response": _response("in_progress", [])}]
    output: list[dict[str, Any]] = []
    if text:
        part = {"type": "output_text", "text": text, "annotations": []}
        said = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
        place = {"output_index": 0, "item_id": "m"}
        empty = {**part, "text": ""}
        frames += [
            {"type": "response.output_item.added", "output_index": 0, "item": {**said, "content": []}},
            {"type": "response.content_part.added", **place, "content_index": 0, "part": empty},
            {"type": "response.output_text.delta", **place, "content_index": 0, "delta": text, "logprobs": []},
            {"type": "response.output_text.done", **place, "content_index": 0, "text": text, "logprobs": []},
            {"type": "response.content_part.done", **place, "content_index": 0, "part": part},
            {"type": "response.output_item.done", "output_index": 0, "item": said},
        ]
        output.append(said)
    first = len(output)
    items = [_item(call) for call in calls]
    for at, item in enumerate(items, first):
        opened = {**item, "arguments": "", "status": "in_progress"}
        frames.append({"type": "response.output_item.added", "output_index": at, "item": opened})
    for number, fragment in _spoken(calls, order):
        place = {"output_index": first + number, "item_id": items[number]["id"]}
        frames.append({"type": "response.function_call_arguments.delta", **place, "delta": fragment})
    for at, item in enumerate(items, first):
        place = {"output_index": at, "item_id": item["id"]}
        done = {"type": "response.function_call_arguments.done", **place, "arguments": item["arguments"]}
        frames += [{**done, "name": item["name"]}]
        frames.append({"type": "response.output_item.done", "output_index": at, "item": item})
    frames.append({"type": "response.completed", "response": _response("completed", [*output, *items])})
    return b"".join(event({**frame, "sequence_number": at}, frame["type"]) for at, frame in enumerate(frames))


def openai_chat(calls: Sequence[WireCall], order: Order, text: str = "") -> bytes:
    chunks: list[dict[str, Any]] = [{"role": "assistant", "content": text}]
    for at, call in enumerate(calls):
        about = {"name": call.name, "arguments": ""}
        chunks.append({"tool_calls": [{"index": at, "id": call.call_id, "type": "function", "function": about}]})
    for number, fragment in _spoken(calls, order):
        chunks.append({"tool_calls": [{"index": number, "function": {"arguments": fragment}}]})
    base = {"id": "cc_1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    frames = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in chunks]
    end = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}
    return b"".join(map(event, [*frames, {**base, "choices": [end]}])) + b"data: [DONE]\n\n"


def google_interactions(calls: Sequence[WireCall], order: Order, text: str = "") -> bytes:
    about = {"id": "v1_1", "object": "interaction", "model": "m"}
    frames: list[dict[str, Any]] = [
        {"event_type": "interaction.created", "interaction": {**about, "status": "in_progress"}}
    ]
    if text:
        frames += [
            {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
            {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": text}},
            {"event_type": "step.stop", "index": 0},
        ]
    first = 1 if text else 0
    for at, call in enumerate(calls, first):
        step = {"type": "function_call", "id": call.call_id, "name": call.name, "arguments": {}}
        frames.append({"event_type": "step.start", "index": at, "step": step})
    for number, fragment in _spoken(calls, order):
        delta = {"type": "arguments_delta", "arguments": fragment}
        frames.append({"event_type": "step.delta", "index": first + number, "delta": delta})
    frames += [{"event_type": "step.stop", "index": first + at} for at in range(len(calls))]
    status = "requires_action" if calls else "completed"
    frames.append({"event_type": "interaction.completed", "interaction": {**about, "status": status}})
    return b"".join(event(frame, frame["event_type"]) for frame in frames) + b"event: done\ndata: [DONE]\n\n"


def google_generate(calls: Sequence[WireCall], order: Order, text: str = "") -> bytes:
    """Calls come whole here, each in a chunk of its own, in the order in which they end."""
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    for call in calls:
        about = {"id": call.call_id, "name": call.name, "args": json.loads(call.text or "{}")}
        parts.append({"functionCall": about})
    chunks = [{"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]} for part in parts]
    end = {"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP", "index": 0}]}
    return b"".join(event({**chunk, "responseId": "r1"}) for chunk in [*chunks, end])


def bedrock_converse(calls: Sequence[WireCall], order: Order, text: str = "") -> bytes:
    frames: list[tuple[str, dict[str, Any]]] = [("messageStart", {"role": "assistant"})]
    if text:
        frames.append(("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": text}}))
        frames.append(("contentBlockStop", {"contentBlockIndex": 0}))
    first = 1 if text else 0
    for at, call in enumerate(calls, first):
        start = {"toolUse": {"toolUseId": call.call_id, "name": call.name}}
        frames.append(("contentBlockStart", {"contentBlockIndex": at, "start": start}))
    for number, fragment in _spoken(calls, order):
        delta = {"toolUse": {"input": fragment}}
        frames.append(("contentBlockDelta", {"contentBlockIndex": first + number, "delta": delta}))
    frames += [("contentBlockStop", {"contentBlockIndex": first + at}) for at in range(len(calls))]
    frames.append(("messageStop", {"stopReason": "tool_use" if calls else "end_turn"}))
    usage = {"inputTokens": 1, "outputTokens": 5, "totalTokens": 6}
    frames.append(("metadata", {"usage": usage, "metrics": {"latencyMs": 7}}))
    return b"".join(event_stream.event(name, {**frame, "p": "abc"}) for name, frame in frames)


def ollama(calls: Sequence[WireCall], order: Order, text: str = "") -> bytes:
    lines: list[dict[str, Any]] = [{"content": text}] if text else []
    for call in calls:
        function = {"index": 0, "name": call.name, "arguments": json.loads(call.text or "{}")}
        lines.append({"content": "", "tool_calls": [{"id": call.call_id, "function": function}]})
    base = {"model": "m", "created_at": "2026-01-02T03:04:05Z"}
    frames = [{**base, "message": {"role": "assistant", **line}, "done": False} for line in lines]
    end = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    frames.append({**base, **end, "prompt_eval_count": 1, "eval_count": 5})
    return b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)


def cohere(calls: Sequence[WireCall], order: Order, text: str = "") -> bytes:
    empty = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    frames: list[dict[str, Any]] = [{"type": "message-start", "id": "coh_1", "delta": {"message": empty}}]
    if text:
        frames.append({"type": "content-start", "index": 0, **_said({"content": {"type": "text", "text": ""}})})
        frames.append({"type": "content-delta", "index": 0, **_said({"content": {"text": text}})})
        frames.append({"type": "content-end", "index": 0})
    for at, call in enumerate(calls):
        about = {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        frames.append({"type": "tool-call-start", "index": at, **_said({"tool_calls": about})})
    for number, fragment in _spoken(calls, order):
        piece = {"tool_calls": {"function": {"arguments": fragment}}}
        frames.append({"type": "tool-call-delta", "index": number, **_said(piece)})
    frames += [{"type": "tool-call-end", "index": at} for at in range(len(calls))]
    usage = {"billed_units": {"output_tokens": 4}, "tokens": {"input_tokens": 1, "output_tokens": 5}}
    end = {"finish_reason": "TOOL_CALL" if calls else "COMPLETE", "usage": usage}
    frames.append({"type": "message-end", "delta": end})
    return b"".join(event(frame, frame["type"]) for frame in frames) + b"data: [DONE]\n\n"


RENDER: dict[str, Callable[[Sequence[WireCall], Order, str], bytes]] = {
    "anthropic": anthropic,
    "openai-responses": openai_responses,
    "openai-chat": openai_chat,
    "google-interactions": google_interactions,
    "google-generate": google_generate,
    "bedrock-converse": bedrock_converse,
    "ollama": ollama,
    "cohere": cohere,
}


def _said(message: dict[str, Any]) -> dict[str, Any]:
    return {"delta": {"message": message}}


def _spoken(calls: Sequence[WireCall], order: Order) -> list[tuple[int, str]]:
    left = [list(call.fragments) for call in calls]
    return [(number, left[number].pop(0)) for number in order]


def _item(call: WireCall) -> dict[str, Any]:
    about = {"type": "function_call", "id": f"fc_{call.call_id}", "call_id": call.call_id}
    return {**about, "name": call.name, "arguments": call.text, "status": "completed"}


def _response(status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "status": status, "error": None, "model": "m",
        "incomplete_details": None, "instructions": None, "output": output, "parallel_tool_calls": True,
        "temperature": 1, "tool_choice": "auto", "tools": [], "top_p": 1, "metadata": {},
    }  # fmt: skip
