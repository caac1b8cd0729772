"""An agent of Pydantic AI as a process that keeps its messages in a file and may kill itself while a tool runs.

The model is a function: it asks for the calls in `CALLS`, then says what it got. Run again, it goes on from the file.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from toolonce.stream.adapters.pydantic_ai import ToolonceToolset
from toolonce.stream.harness.async_client import AsyncClient


def model(calls: list[tuple[str, Any]], **response: Any) -> FunctionModel:
    """A model that makes these calls in its first turn and then reports all that tools returned."""

    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        returned = [part for message in messages for part in message.parts if part.part_kind == "tool-return"]
        retried = [part for message in messages for part in message.parts if part.part_kind == "retry-prompt"]
        if returned:
            return ModelResponse([TextPart(" | ".join(str(part.content) for part in returned))])
        if retried:
            return ModelResponse([TextPart(f"retry: {retried[-1].content}")])
        parts = [ToolCallPart(name, args, tool_call_id=f"call_{place}") for place, (name, args) in enumerate(calls)]
        return ModelResponse(parts, **({"provider_response_id": "resp_1"} | response))

    return FunctionModel(answer)


async def run(url: str, namespace: str, file: Path) -> str:
    async with AsyncClient(url, scope="tenant-1/talk-1", namespace=namespace) as client:
        agent = Agent(model([("put_and_wait", {"what": "slow"}), ("put", {"what": "quick"})]))
        stored = ModelMessagesTypeAdapter.validate_json(file.read_bytes()) if file.exists() else None
        prompt = None if stored else "Do it."
        toolset: ToolonceToolset[object] = ToolonceToolset(client)
        async with agent.iter(prompt, message_history=stored, toolsets=[toolset]) as steps:
            async for _ in steps:
                file.write_bytes(ModelMessagesTypeAdapter.dump_json(steps.all_messages()))
        assert steps.result
        return steps.result.output


if __name__ == "__main__":
    print("said", asyncio.run(run(sys.argv[1], sys.argv[2], Path(sys.argv[3]))), flush=True)
