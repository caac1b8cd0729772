"""A conversation with a model that any process can continue, for blocking programs.

`loop` decides; this file runs its steps. Sends no requests itself: the caller does. Needs no provider SDK.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Unpack

from ...store.model.outcomes import Outcome
from ...store.operations.operators import Decision
from ..dialects.request import taking_turns
from ..harness.batch import Batch
from ..harness.client import Client
from ..provider.response import Opener
from ..provider.retry import read_turn
from ..replies.protocol import Message
from ..turns.turn import Dialect, TurnResult
from .loop import Loop, ReadTurn, RunCalls, Step, Steps
from .terms import Answer, ConversationOptions, Hooks, Terms
from .trimming import groups, to_send


class Conversation:
    """One conversation, in the scope of its client.

    Args:
        ask: returns an opener for the history so far: ``lambda messages: httpx_opener(http, http.build_request(...))``.
            `request_body` makes the body and has a place for the system prompt.
        options: see `ConversationOptions`: ``terms``, ``hooks``, ``history``.

    Raises:
        StreamMisuse: a call in the history has no result, or a result no call.
        TypeError: the history is not JSON.
    """

    def __init__(
        self,
        client: Client,
        dialect: Dialect,
        ask: Callable[[list[Message]], Opener],
        **options: Unpack[ConversationOptions],
    ) -> None:
        hooks = options.get("hooks", Hooks())
        self._client = client
        self._dialect = dialect
        self._ask = ask
        self._terms = options.get("terms", Terms())
        self._hooks = hooks
        self._observers = replace(hooks.observers, on_aborted=hooks.observers.on_aborted or client.note_aborted)
        self._loop: Loop[Answer] = Loop(client.terms, dialect, self._terms, Answer, options.get("history", ()))

    @property
    def messages(self) -> list[Message]:
        """The history in the provider's form, as last read or written."""
        return self._loop.messages

    def say(self, content: str | Sequence[Message], *, step: str) -> Answer:
        """Ask a question and run the loop until there is an answer. A repeated `step` asks nothing again.

        Args:
            content: a text, or content blocks; see `user_message`. Blocks are stored as JSON, with bytes as base64.
            step: your id of the question, the same on every retry.

        Raises:
            TypeError: the content is neither, or is not JSON.
            StreamMisuse: ``hooks.trim`` left no message, or cut a call from its results; nothing was asked.
            KeyringMissing: a call has secret fields, and there are no keys.
        """
        return self._run(self._loop.say(content, step))

    def resume(self) -> Answer:
        """Continue this conversation where it, or another harness, stopped; also after an approval.

        Raises:
            ValueError: the conversation has not begun.
            StreamMisuse, KeyringMissing: as for `say`.
        """
        return self._run(self._loop.resume())

    def approve(self, outcome: Outcome, *, actor: str, reason: str = "") -> Decision:
        """Approve a call of `Answer.held`, as it was shown; then `resume`. See `Client.approve`."""
        return self._client.approve(outcome, actor=actor, reason=reason)

    def deny(self, outcome: Outcome, *, actor: str, reason: str = "") -> Decision:
        """Deny a call of `Answer.held`; the model is told with `resume`. See `Client.deny`."""
        return self._client.deny(outcome, actor=actor, reason=reason)

    def _run(self, steps: Steps[Answer]) -> Answer:
        done = None
        while True:
            try:
                step = steps.send(done)
            except StopIteration as stop:
                answer: Answer = stop.value
                return answer
            done = self._do(step)

    def _do(self, step: Step) -> Any:
        match step:
            case ReadTurn(messages):
                return self._read_turn(messages)
            case RunCalls():
                return self._run_calls(step)
            case _:
                return self._client.run(step)

    def _read_turn(self, messages: list[Message]) -> TurnResult:
        terms, trim = self._terms, self._hooks.trim
        sent = (
            to_send(trim(groups(messages, self._dialect)), self._dialect)
            if trim
            else taking_turns(messages, self._dialect)
        )
        turn = read_turn(
            self._ask(sent), self._dialect, budget=terms.budget, observers=self._observers, **terms.request
        )
        if self._hooks.on_turn:
            self._hooks.on_turn(turn)
        return turn

    def _run_calls(self, step: RunCalls) -> Batch:
        batch = self._client.submit_calls(step.calls, turn_id=step.turn_id)
        if self._hooks.on_batch:
            self._hooks.on_batch(batch)
        for outcome in batch.events(self._terms.wait_s, until_held=True):
            if self._hooks.on_outcome:
                self._hooks.on_outcome(outcome)
        return batch
