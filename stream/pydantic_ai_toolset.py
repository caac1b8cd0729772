"""A toolset for Pydantic AI that has its calls run here; needs the extra ``pydantic-ai``.

Decides which turn a call belongs to and what the agent is told. Uses public extension points only: the agent, its
models and its history stay as they are. A run that is started again from its stored messages runs nothing twice.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.messages import ModelResponse
from pydantic_ai.tools import AgentDepsT, RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from ..store.errors import TurnIdMissing
from ..store.outcomes import Outcome
from ..store.parts import Parts
from ..store.specs import ToolSpec, published
from ..store.states import State
from ..store.times import wait_limit
from .async_client import AsyncClient
from .reply_answers import for_model
from .submission import usable_turn_id
from .turn import ToolCall

# Admission judges arguments, once for all harnesses; what it refuses the model may correct.
_ANY_ARGUMENTS = SchemaValidator(core_schema.any_schema())
_NOT_ENDED = frozenset({"length", "content_filter", "error"})


class ToolonceToolset(AbstractToolset[AgentDepsT]):
    """The tools that workers have published, for an agent: ``Agent(model, toolsets=[ToolonceToolset(client)])``.

    Args:
        client: in the scope of this conversation.
        wait_s: how long a call is waited for; after it the model is told that the call still runs. None: for ever.
        tools: only these names; None for all that are published.
    """

    def __init__(
        self, client: AsyncClient, *, wait_s: float | None = None, tools: frozenset[str] | None = None
    ) -> None:
        self._client = client
        self._wait_s = wait_limit("wait_s", wait_s)
        self._tools = tools

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
        assert isinstance(response, ModelResponse), "a tool is called for a response of the model"
        if response.finish_reason in _NOT_ENDED:
            raise ModelRetry("Your output was cut before it ended, so nothing was executed. Ask again, more briefly.")
        call = ToolCall(name, tool_args, ctx.tool_call_id, "function", 0)
        batch = await self._client.submit_calls([call], turn_id=turn_id_of(response))
        [outcome] = await batch.wait(self._wait_s)
        return _told(outcome)


def turn_id_of(response: ModelResponse) -> str:
    """What the stored message says of itself: the provider's id, else run and time, which no other response shares.

    Raises:
        TurnIdMissing: it has neither.
    """
    try:
        return usable_turn_id(None, response.provider_response_id)
    except TurnIdMissing:
        if not response.run_id:
            raise
        return f"{response.run_id}/{response.timestamp.isoformat()}"


def _definition(spec: ToolSpec) -> ToolDefinition:
    return ToolDefinition(name=spec.name, description=spec.description or None, parameters_json_schema=spec.schema)


def _told(outcome: Outcome) -> Any:
    """The value, or the words for what became of the call; an unknown one forbids to claim success.

    Raises:
        ModelRetry: unusable arguments, for the first time: the model may correct them.
    """
    refused = outcome.state is State.REFUSED and outcome.failure is not None
    if refused and outcome.failure and outcome.failure.code == "invalid_arguments" and not outcome.is_repeated_slip:
        raise ModelRetry(for_model(outcome))
    plain = outcome.state is State.SUCCEEDED and not outcome.conflict and not outcome.marks
    return outcome.value if plain and Parts.find(outcome.value) is None else for_model(outcome)
