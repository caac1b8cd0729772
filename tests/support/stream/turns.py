"""Turns of each dialect as a decoder hands them over, and outcomes for their calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolonce.store.model.outcomes import Failure, Outcome
from toolonce.store.model.states import State
from toolonce.stream.turns.turn import Dialect, RejectedCall, ToolCall, TurnResult


@dataclass(frozen=True)
class Asked:
    """One call of a turn to build; ``rejected`` names the reason of a refused one."""

    name: str
    call_id: str | None
    arguments: dict[str, Any] | None = None
    rejected: str | None = None

    @property
    def object(self) -> dict[str, Any]:
        return self.arguments or {}


THREE = (Asked("look", "call_a", {"q": "é"}), Asked("book", "call_b", {"n": 2**63}), Asked("now", "call_c"))


def turn(
    dialect: Dialect, asked: Sequence[Asked] = THREE, *, turn_id: str = "turn_1", text: str = "I see."
) -> TurnResult:
    """A completed turn of this dialect with these calls."""
    calls = [
        ToolCall(call.name, call.object, call.call_id, "function", position, turn_id)
        for position, call in enumerate(asked)
        if call.rejected is None
    ]
    rejected = [
        RejectedCall(call.name, call.call_id, call.rejected, position, "{oops", turn_id)
        for position, call in enumerate(asked)
        if call.rejected is not None
    ]
    items = tuple(_ITEMS[dialect](asked, text))
    return TurnResult(dialect, "completed", tuple(calls), tuple(rejected), text, turn_id, items)


def _anthropic(asked: Sequence[Asked], text: str) -> list[dict[str, Any]]:
    blocks = [{"type": "tool_use", "id": call.call_id, "name": call.name, "input": call.object} for call in asked]
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    return [thought, {"type": "text", "text": text}, *blocks]


def _responses(asked: Sequence[Asked], text: str) -> list[dict[str, Any]]:
    said = {"type": "output_text", "text": text, "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [said]}
    return [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "eA=="},
        message,
        *({
            "type": "function_call",
            "id": f"fc_{position}",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": json.dumps(call.object),
            "status": "completed",
        } for position, call in enumerate(asked)),
    ]  # fmt: skip


def _chat(asked: Sequence[Asked], text: str) -> list[dict[str, Any]]:
    calls = [
        {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.object)}}
        for call in asked
    ]
    return [{"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {})]


def _generate(asked: Sequence[Asked], text: str) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [
        {"functionCall": {"name": call.name, "args": call.object} | ({"id": call.call_id} if call.call_id else {})}
        for call in asked
    ]
    if parts:
        parts[0]["thoughtSignature"] = "c2ln"
    return [{"text": text}, *parts]


def _interactions(asked: Sequence[Asked], text: str) -> list[dict[str, Any]]:
    calls = [
        {"type": "function_call", "id": call.call_id, "name": call.name, "arguments": call.object} for call in asked
    ]
    thought = {"type": "thought", "signature": "c2ln"}
    return [thought, {"type": "model_output", "content": [{"type": "text", "text": text}]}, *calls]


def _converse(asked: Sequence[Asked], text: str) -> list[dict[str, Any]]:
    calls = [{"toolUse": {"toolUseId": call.call_id, "name": call.name, "input": call.object}} for call in asked]
    thought = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}}
    return [thought, {"text": text}, *calls]


def _ollama(asked: Sequence[Asked], text: str) -> list[dict[str, Any]]:
    calls = [
        {"function": {"name": call.name, "arguments": call.object}} | ({"id": call.call_id} if call.call_id else {})
        for call in asked
    ]
    return [{"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {})]


def _cohere(asked: Sequence[Asked], text: str) -> list[dict[str, Any]]:
    calls = [
        {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.object)}}
        for call in asked
    ]
    thought = [{"type": "thinking", "thinking": "hm"}]
    if not calls:
        return [{"role": "assistant", "content": [*thought, {"type": "text", "text": text}]}]
    return [{"role": "assistant", "tool_calls": calls, "tool_plan": text, "content": thought}]


_ITEMS = {
    "anthropic": _anthropic,
    "openai-responses": _responses,
    "openai-chat": _chat,
    "google-generate": _generate,
    "bedrock-converse": _converse,
    "ollama": _ollama,
    "cohere": _cohere,
    "google-interactions": _interactions,
}


def outcomes(result: TurnResult, *, state: State = State.SUCCEEDED, value: Any = None) -> list[Outcome]:
    """One outcome per call, rejected ones refused, the others as said."""
    calls: list[ToolCall | RejectedCall] = sorted((*result.calls, *result.rejected), key=lambda call: call.position)
    return [_outcome(call, state, value) for call in calls]


def _outcome(call: ToolCall | RejectedCall, state: State, value: Any) -> Outcome:
    key = f"{call.position:032x}"
    if isinstance(call, RejectedCall):
        failure = Failure(call.reason, "the text breaks off")
        state, value = State.REFUSED, None
    else:
        failure = None
    return Outcome(
        key, f"{key}-0", call.name, call.call_id, call.position, state, value,
        failure=failure, kind=call.kind, echo=call.echo,
    )  # fmt: skip


def request(dialect: str, messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A request body whose history is one question and these messages."""
    match dialect:
        case "anthropic":
            return {"messages": [{"role": "user", "content": "Well?"}, *messages]}
        case "openai-chat" | "ollama" | "cohere":
            return {"messages": [{"role": "user", "content": "Well?"}, *messages]}
        case "bedrock-converse":
            return {"messages": [{"role": "user", "content": [{"text": "Well?"}]}, *messages]}
        case "openai-responses":
            return {"input": [{"role": "user", "content": "Well?"}, *messages]}
        case "google-generate":
            return {"contents": [{"role": "user", "parts": [{"text": "Well?"}]}, *messages]}
        case _:
            said = {"type": "user_input", "content": [{"type": "text", "text": "Well?"}]}
            return {"input": [said, *messages]}
