"""A toolset for Pydantic AI that runs calls through toolonce; needs the extra ``pydantic-ai``.

Decides which turn a call belongs to, and what the agent is told. Uses public extension points only: the agent, its
models, its history and its call ids stay unchanged, also where a server numbers calls from 0 in each turn. A run that
is started again from its stored messages runs nothing twice.
"""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.tools import AgentDepsT, RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from ...store.model.errors import TurnIdMissing
from ...store.model.outcomes import Outcome
from ...store.model.parts import Parts
from ...store.model.specs import ToolSpec
from ...store.model.states import State
from ...store.model.times import wait_limit
from ...store.operations.tools import published
from ..harness.async_client import AsyncBatch, AsyncClient
from ..harness.submission import usable_turn_id
from ..replies.answers import for_model
from ..turns.turn import RejectedCall, ToolCall
from ..wire.arguments import DecodedArguments, Unusable, decode_text
from ..wire.limits import DEFAULT_LIMITS


class _AnyArguments:
    """Accepts all arguments, since admission validates the text that the model wrote and stores refused calls.
    pydantic's own parser would accept NaN and duplicate keys."""

    def validate_json(self, input: str | bytes | bytearray, **_options: Any) -> dict[str, Any]:  # noqa: A002
        value = _decoded(input if isinstance(input, str) else bytes(input).decode("utf-8", "surrogatepass")).value
        return value if isinstance(value, dict) else {}

    def validate_python(self, input: Any, **_options: Any) -> Any:  # noqa: A002
        return input


def _decoded(text: str) -> DecodedArguments:
    try:
        return decode_text(text, DEFAULT_LIMITS)
    except Unusable:  # cut, or two objects: in a whole response only this call is wrong
        return DecodedArguments(None, text, "invalid_json")


_ANY_ARGUMENTS = _AnyArguments()
_TURNS_OF_THE_LOOP = 10
"""Event loop turns for which calls are gathered. An agent starts all calls of a response together, unless it runs them
one
by one. Only calls that it starts are submitted: an approval, or a toolset around this one, may hold a call back."""
_NOT_ENDED = frozenset({"length", "content_filter", "error"})


class ToolonceToolset(AbstractToolset[AgentDepsT]):
    """The tools that workers have published, as a toolset: ``Agent(model, toolsets=[ToolonceToolset(client)])``.

    The calls of a response that the agent runs in parallel, as it does by default, are submitted as one batch in call
    order. Calls that it starts later are another submission; the ``after`` of a tool then covers the earlier calls.

    Args:
        client: with the scope of this conversation.
        wait_s: seconds to wait for a call; then the model is told that it still runs. None waits forever.
        tools: only these tools; None for all published ones.
    """

    def __init__(
        self, client: AsyncClient, *, wait_s: float | None = None, tools: frozenset[str] | None = None
    ) -> None:
        self._client = client
        self._wait_s = wait_limit("wait_s", wait_s)
        self._tools = tools
        self._gathering: dict[str, _Gathering] = {}

    @property
    def id(self) -> str:
        return "toolonce"

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        found = await self._client.run(published(self._client.terms.space))
        retries = 1 if ctx.max_retries is None else ctx.max_retries
        return {
            name: ToolsetTool(
                toolset=self, tool_def=_definition(spec), max_retries=max(1, retries), args_validator=_ANY_ARGUMENTS
            )
            for name, spec in found.tools.items()
            if self._tools is None or name in self._tools
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        response = ctx.messages[-1]
        assert isinstance(response, ModelResponse), "a tool call without a response of the model"
        if response.finish_reason in _NOT_ENDED:
            raise ModelRetry("Your output was cut before it ended, so nothing was executed. Ask again, more briefly.")
        call = _call(name, tool_args, ctx.tool_call_id, response)
        batch = await self._submit(response, call)
        [outcome] = await batch.wait(self._wait_s)
        return _result(outcome)

    async def _submit(self, response: ModelResponse, call: ToolCall | RejectedCall) -> AsyncBatch:
        """Submit a call together with the calls of its response that start at the same time; returns its batch."""
        turn_id = turn_id_of(response)
        gathering = self._gathering.get(turn_id)
        if gathering is None:
            gathering = self._gathering[turn_id] = _Gathering()
            gathering.submitted = asyncio.ensure_future(self._submit_soon(turn_id, gathering, _count(response)))
        gathering.calls.append(call)
        outcomes = await asyncio.shield(gathering.submitted)
        return AsyncBatch(self._client, turn_id, [outcomes[id(call)]])

    async def _submit_soon(self, turn_id: str, gathering: _Gathering, expected: int) -> dict[int, Outcome]:
        for _ in range(_TURNS_OF_THE_LOOP):
            await asyncio.sleep(0)
            if len(gathering.calls) >= expected:
                break
        del self._gathering[turn_id]  # later calls are another submission of the turn
        calls = sorted(gathering.calls, key=lambda call: call.position)
        batch = await self._client.submit_calls(calls, turn_id=turn_id)
        return {id(call): outcome for call, outcome in zip(calls, batch.outcomes, strict=True)}


class _Gathering:
    """The gathered calls of one response, and their submission."""

    def __init__(self) -> None:
        self.calls: list[ToolCall | RejectedCall] = []
        self.submitted: asyncio.Future[dict[int, Outcome]]


def _call(name: str, arguments: Any, call_id: str | None, response: ModelResponse) -> ToolCall | RejectedCall:
    """The call with the arguments from the agent; a refused one where the model's text cannot be decoded."""
    place = _place(response, call_id)
    part = response.parts[place] if place < len(response.parts) else None
    text = part.args if isinstance(part, ToolCallPart) else None
    if isinstance(text, str) and not arguments and (reason := _decoded(text).reason):
        return RejectedCall(name, call_id, reason, place, text)
    return ToolCall(name, arguments, call_id, "function", place)


def _count(response: ModelResponse) -> int:
    return sum(isinstance(part, ToolCallPart) for part in response.parts)


def _place(response: ModelResponse, call_id: str | None) -> int:
    """The position of a call among the parts of its response."""
    ids = [part.tool_call_id if isinstance(part, ToolCallPart) else None for part in response.parts]
    return ids.index(call_id) if call_id in ids else len(ids)


def turn_id_of(response: ModelResponse) -> str:
    """The turn id of a stored message: the provider's id, else its run id and time, which no other response has.

    Raises:
        TurnIdMissing: the message has neither.
    """
    try:
        return usable_turn_id(None, response.provider_response_id)
    except TurnIdMissing:
        if not response.run_id:
            raise
        return f"{response.run_id}/{response.timestamp.isoformat()}"


def _definition(spec: ToolSpec) -> ToolDefinition:
    return ToolDefinition(name=spec.name, description=spec.description or None, parameters_json_schema=spec.schema)


def _result(outcome: Outcome) -> Any:
    """The result for the agent: the tool's value, or the text for the model about the outcome.

    Raises:
        ModelRetry: the arguments were invalid for the first time, so that the model may correct them.
    """
    refused = outcome.state is State.REFUSED
    is_argument_error = outcome.failure is not None and outcome.failure.code in ("invalid_arguments", "too_costly")
    if refused and is_argument_error and not outcome.has_repeated_argument_error:
        raise ModelRetry(for_model(outcome))
    plain = outcome.state is State.SUCCEEDED and not outcome.conflict and not outcome.marks
    return outcome.value if plain and Parts.find(outcome.value) is None else for_model(outcome)
