"""A conversation over asyncio. `conversation` documents its methods, and `loop` decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from inspect import isawaitable
from typing import Any, Unpack

from ...store.model.outcomes import Outcome
from ...store.operations.operators import Decision
from ..dialects.request import taking_turns
from ..harness.async_client import AsyncBatch, AsyncClient
from ..provider.async_retry import AsyncOpener, read_turn_async
from ..replies.protocol import Message
from ..turns.turn import Dialect, TurnResult
from .loop import Loop, ReadTurn, RunCalls, Step, Steps
from .terms import AsyncAnswer, AsyncConversationOptions, AsyncHooks, Terms
from .trimming import groups, to_send


class AsyncConversation:
    """One conversation, in the scope of its client; see `Conversation` for arguments, results and errors.

    Cancelling the task is safe at any point: `resume`, here or in another process, goes on.

    Args:
        ask: returns an opener for the history so far, such as `httpx_opener_async`; may be a coroutine function.
    """

    def __init__(
        self,
        client: AsyncClient,
        dialect: Dialect,
        ask: Callable[[list[Message]], AsyncOpener | Awaitable[AsyncOpener]],
        **options: Unpack[AsyncConversationOptions],
    ) -> None:
        hooks = options.get("hooks", AsyncHooks())
        self._client = client
        self._dialect = dialect
        self._ask = ask
        self._terms = options.get("terms", Terms())
        self._hooks = hooks
        self._observers = replace(hooks.observers, on_aborted=hooks.observers.on_aborted or client.note_aborted)
        self._loop: Loop[AsyncAnswer] = Loop(
            client.terms, dialect, self._terms, AsyncAnswer, options.get("history", ())
        )

    @property
    def messages(self) -> list[Message]:
        """The history in the provider's form, as last read or written."""
        return self._loop.messages

    async def say(self, content: str | Sequence[Message], *, step: str) -> AsyncAnswer:
        """Ask a question and run the loop until there is an answer; as `Conversation.say`."""
        return await self._run(self._loop.say(content, step))

    async def resume(self) -> AsyncAnswer:
        """Continue this conversation where it, or another harness, stopped; as `Conversation.resume`."""
        return await self._run(self._loop.resume())

    async def approve(self, outcome: Outcome, *, actor: str, reason: str = "") -> Decision:
        """Approve a call of `AsyncAnswer.held`; as `Conversation.approve`."""
        return await self._client.approve(outcome, actor=actor, reason=reason)

    async def deny(self, outcome: Outcome, *, actor: str, reason: str = "") -> Decision:
        """Deny a call of `AsyncAnswer.held`; as `Conversation.deny`."""
        return await self._client.deny(outcome, actor=actor, reason=reason)

    async def _run(self, steps: Steps[AsyncAnswer]) -> AsyncAnswer:
        done = None
        while True:
            try:
                step = steps.send(done)
            except StopIteration as stop:
                answer: AsyncAnswer = stop.value
                return answer
            done = await self._do(step)

    async def _do(self, step: Step) -> Any:
        match step:
            case ReadTurn(messages):
                return await self._read_turn(messages)
            case RunCalls():
                return await self._run_calls(step)
            case _:
                return await self._client.run(step)

    async def _read_turn(self, messages: list[Message]) -> TurnResult:
        terms = self._terms
        opener = self._ask(await self._to_send(messages))
        turn = await read_turn_async(
            await opener if isinstance(opener, Awaitable) else opener,
            self._dialect,
            budget=terms.budget,
            observers=self._observers,
            **terms.request,
        )
        await _told(self._hooks.on_turn, turn)
        return turn

    async def _to_send(self, messages: list[Message]) -> list[Message]:
        if not self._hooks.trim:
            return taking_turns(messages, self._dialect)
        kept = self._hooks.trim(groups(messages, self._dialect))
        return to_send(await kept if isinstance(kept, Awaitable) else kept, self._dialect)

    async def _run_calls(self, step: RunCalls) -> AsyncBatch:
        batch = await self._client.submit_calls(step.calls, turn_id=step.turn_id)
        await _told(self._hooks.on_batch, batch)
        async for outcome in batch.events(self._terms.wait_s, until_held=True):
            await _told(self._hooks.on_outcome, outcome)
        return batch


async def _told(hook: Callable[[Any], object] | None, news: object) -> None:
    done = hook(news) if hook else None
    if isawaitable(done):
        await done
