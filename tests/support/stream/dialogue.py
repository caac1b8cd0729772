"""A conversation with the local provider server, as a test holds it or as a process that may be killed at each step.

Run as a program it says one thing and prints the answer; `TOOLONCE_TEST_KILL` names the step at which it kills itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any

import httpx2

from tests.support.stream.wire_paths import PATHS
from toolonce.store.model.outcomes import Outcome
from toolonce.stream.agent.async_conversation import AsyncConversation
from toolonce.stream.agent.conversation import Conversation
from toolonce.stream.agent.terms import AsyncHooks, Hooks, Terms
from toolonce.stream.dialects.request import request_body
from toolonce.stream.dialects.table import spec_of
from toolonce.stream.harness.async_client import AsyncBatch, AsyncClient
from toolonce.stream.harness.batch import Batch
from toolonce.stream.harness.client import Client
from toolonce.stream.provider.async_retry import httpx_opener_async
from toolonce.stream.provider.retry import Budget, httpx_opener
from toolonce.stream.replies.protocol import Message
from toolonce.stream.turns.turn import Dialect, TurnResult

KILL = "TOOLONCE_TEST_KILL"
OVER_ASYNCIO = "TOOLONCE_TEST_ASYNCIO"
STEPS = ("asked", "turn", "submitted", "waited", "replied")
"""Where a harness may die: with the question noted; with a turn that came; after its calls were submitted; after they
ended; with the final turn that came."""


def talk(client: Client, http: httpx2.Client, server: str, dialect: Dialect, **more: Any) -> Conversation:
    def ask(messages: list[Message]) -> Any:
        body = request_body({"model": "m"}, messages, dialect)
        return httpx_opener(http, http.build_request("POST", server + PATHS[dialect], json=body))

    terms = more.pop("terms", Terms(wait_s=60, budget=Budget(attempts=2)))
    return Conversation(client, dialect, ask, terms=terms, **more)


def talk_async(
    client: AsyncClient, http: httpx2.AsyncClient, server: str, dialect: Dialect, **more: Any
) -> AsyncConversation:
    async def ask(messages: list[Message]) -> Any:
        body = request_body({"model": "m"}, messages, dialect)
        return httpx_opener_async(http, http.build_request("POST", server + PATHS[dialect], json=body))

    terms = more.pop("terms", Terms(wait_s=60, budget=Budget(attempts=2)))
    return AsyncConversation(client, dialect, ask, terms=terms, **more)


class InLoop:
    """An `AsyncConversation` as blocking tests use one: each question has an event loop, client and object of its own,
    as after a restart."""

    def __init__(self, url: str, namespace: str, server: str, dialect: Dialect, **more: Any) -> None:
        self._given = url, namespace, server, dialect
        self._more = more
        self.messages: list[Message] = []

    def say(self, content: Any, *, step: str) -> Any:
        return self._done(lambda conversation: conversation.say(content, step=step))

    def resume(self) -> Any:
        return self._done(lambda conversation: conversation.resume())

    def approve(self, outcome: Outcome, *, actor: str) -> Any:
        return self._done(lambda conversation: conversation.approve(outcome, actor=actor))

    def deny(self, outcome: Outcome, *, actor: str) -> Any:
        return self._done(lambda conversation: conversation.deny(outcome, actor=actor))

    def _done(self, what: Any) -> Any:
        async def main() -> Any:
            url, namespace, server, dialect = self._given
            async with (
                AsyncClient(url, scope="tenant-1/talk-1", namespace=namespace) as client,
                httpx2.AsyncClient(timeout=60) as http,
            ):
                conversation = talk_async(client, http, server, dialect, **dict(self._more))
                answer = await what(conversation)
                self.messages = conversation.messages
                return answer

        return asyncio.run(main())


class Dying:
    """Kills the process at a step, the first time it is reached."""

    def __init__(self, step: str) -> None:
        self.step = step

    def reached(self, step: str) -> None:
        if step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)

    def groups(self, groups: list[list[Message]]) -> list[list[Message]]:
        """A trim that keeps everything, called before each request."""
        self.reached("asked")
        return groups


def main() -> None:
    url, namespace, server, name, text, step = sys.argv[1:]
    dying, dialect = Dying(os.environ.get(KILL, "")), spec_of(name).name

    def on_turn(turn: TurnResult) -> None:
        dying.reached("turn" if turn.calls else "replied")

    def on_batch(batch: Batch) -> None:
        dying.reached("submitted")
        if dying.step == "waited":
            batch.wait(60)
            dying.reached("waited")

    async def on_async_batch(batch: AsyncBatch) -> None:
        dying.reached("submitted")
        if dying.step == "waited":
            await batch.wait(60)
            dying.reached("waited")

    if os.environ.get(OVER_ASYNCIO):
        async_hooks = AsyncHooks(on_turn=on_turn, on_batch=on_async_batch, trim=dying.groups)
        answer: Any = InLoop(url, namespace, server, dialect, hooks=async_hooks).say(text, step=step)
    else:
        with Client(url, scope="tenant-1/talk-1", namespace=namespace) as client, httpx2.Client(timeout=60) as http:
            hooks = Hooks(on_turn=on_turn, on_batch=on_batch, trim=dying.groups)
            answer = talk(client, http, server, dialect, hooks=hooks).say(text, step=step)
    print("answer", json.dumps({"text": answer.text, "ended": answer.ended}), flush=True)


if __name__ == "__main__":
    main()
