"""A small reference loop: question -> turn -> calls -> results -> turn ... -> answer, for every dialect.

Decides the order of the steps. Each step is stored before the next one acts, so that a harness that was killed
continues where it was and nothing runs twice. Sends no requests itself: the caller does. Needs no provider SDK.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Literal

from ...store.model.times import wait_limit
from ..dialects.request import taking_turns, user_message
from ..dialects.table import spec_of
from ..harness.batch import Batch
from ..harness.client import Client
from ..harness.history import assistant_messages
from ..harness.journal import Journal, JournalStep
from ..provider.response import Opener
from ..provider.retry import Budget, Observers, read_turn
from ..replies.protocol import Message
from ..replies.translations import FALLBACK, TRANSLATIONS, MessageCode, Translations
from ..replies.user_text import for_user
from ..turns.turn import Dialect, RejectedCall, ToolCall, TurnResult

AnswerEnd = Literal["answered", "running", "gave_up", "no_turn"]


@dataclass(frozen=True, slots=True)
class Hooks:
    """The functions that a conversation calls as it goes. ``observers`` is what `read_turn` takes."""

    observers: Observers = field(default_factory=Observers)
    on_turn: Callable[[TurnResult], None] | None = None
    on_batch: Callable[[Batch], None] | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """How the loop runs.

    Attributes:
        locale: the language of messages for the user.
        wait_s: seconds to wait for calls before the answer is "still running"; None waits forever.
        turns: most turns for one question, so that a model that repeats itself is stopped.
        max_tokens: the limit of output tokens in your requests, as for `TurnDecoder`.
        trust_done: the server never sends a finish reason, as for `TurnDecoder`; ``openai-chat`` only.
    """

    locale: str = FALLBACK
    wait_s: float | None = 300.0
    turns: int = 20
    budget: Budget = field(default_factory=Budget)
    translations: Translations = TRANSLATIONS
    max_tokens: int | None = None
    trust_done: bool = False

    def __post_init__(self) -> None:
        wait_limit("wait_s", self.wait_s)


@dataclass(frozen=True, slots=True)
class Answer:
    """The text for the user, and why the loop ended.

    Attributes:
        ended: ``answered``: by the model; ``running``: calls still run, call `resume` later; ``gave_up``: the model
            could not use a tool, or took too many turns; ``no_turn``: the provider gave none, the history is unchanged.
        turn: the turn that ended the loop, where this call read it.
        batch: the calls that ended the loop.
    """

    text: str
    ended: AnswerEnd
    turn: TurnResult | None = None
    batch: Batch | None = None


class Conversation:
    """One conversation, in the scope of its client.

    Args:
        ask: returns an opener for the history so far: ``lambda messages: httpx_opener(http, http.build_request(...))``.
    """

    def __init__(
        self,
        client: Client,
        dialect: Dialect,
        ask: Callable[[list[Message]], Opener],
        *,
        terms: Terms = Terms(),
        hooks: Hooks = Hooks(),
    ) -> None:
        self._client = client
        self._dialect = dialect
        self._ask = ask
        self._terms = terms
        self._hooks = hooks
        self._observers = replace(hooks.observers, on_aborted=hooks.observers.on_aborted or client.note_aborted)
        self._journal = Journal(client)

    @property
    def messages(self) -> list[Message]:
        """The history in the provider's form."""
        entries = self._journal.entries
        after = zip_longest(entries, entries[1:])
        said = (
            entry.messages or self._written(entry, following.reply_ids if following else ())
            for entry, following in after
        )
        return taking_turns([message for messages in said for message in messages], self._dialect)

    def _written(self, entry: JournalStep, reply_ids: Sequence[str | None]) -> Sequence[Message]:
        """The messages that a turn adds to the history; after admission with the call ids that it chose."""
        return assistant_messages(self._dialect, self._turn(entry), entry.turn_id, reply_ids)

    def _turn(self, entry: JournalStep) -> TurnResult:
        calls = tuple(call for call in entry.calls if isinstance(call, ToolCall))
        rejected = tuple(call for call in entry.calls if isinstance(call, RejectedCall))
        return TurnResult(
            spec_of(self._dialect).name,
            "paused" if entry.kind == "paused" else "completed",
            calls,
            rejected,
            entry.text,
            assistant=entry.assistant,
            order=entry.order,
        )

    def say(self, text: str, *, step: str) -> Answer:
        """Ask a question and run the loop until there is an answer. A repeated `step` asks nothing again."""
        self._journal.read()
        while not self._journal.has_step(step):  # again, where another harness wrote first
            last = self._journal.entries[-1] if self._journal.entries else None
            before = self._calls_of(last) if last and last.calls else None
            if before is not None:
                return before  # calls of the question before still run
            self._journal.add(JournalStep("question", (user_message(text, self._dialect),), step=step))
        match self._journal.end_of(step):
            case JournalStep(kind="turn", text=said):
                return Answer(said, "answered")
            case JournalStep(kind="results", text=said) if said:
                return Answer(said, "gave_up")
        return self._go_on()

    def resume(self) -> Answer:
        """Continue this conversation where it, or another harness, stopped.

        Raises:
            ValueError: the conversation has not begun.
        """
        self._journal.read()
        if not self._journal.entries:
            raise ValueError("this conversation has not begun: call say() first")
        return self._go_on()

    def _go_on(self) -> Answer:
        for _ in range(2 * self._terms.turns):
            last = self._journal.entries[-1]
            answer = self._calls_of(last) if last.kind == "turn" else self._next_turn(last)
            if answer is not None:
                return answer
        return Answer(self._said(MessageCode.TURN_UNUSABLE), "gave_up")

    def _next_turn(self, last: JournalStep) -> Answer | None:
        if last.kind == "results" and last.text:
            return Answer(last.text, "gave_up")
        opener = self._ask(self.messages)
        terms = self._terms
        turn = read_turn(
            opener,
            self._dialect,
            budget=terms.budget,
            observers=self._observers,
            max_tokens=terms.max_tokens,
            trust_done=terms.trust_done,
        )
        if self._hooks.on_turn:
            self._hooks.on_turn(turn)
        if turn.outcome not in ("completed", "paused"):
            return Answer(for_user(turn, self._terms.locale, translations=self._terms.translations), "no_turn", turn)
        turn_id = uuid.uuid4().hex
        calls: list[ToolCall | RejectedCall] = sorted((*turn.calls, *turn.rejected), key=lambda call: call.position)
        kind: Literal["paused", "turn"] = "paused" if turn.outcome == "paused" else "turn"
        self._journal.add(
            JournalStep(kind, (), tuple(calls), turn.text, turn_id=turn_id, assistant=turn.assistant, order=turn.order)
        )
        return None

    def _calls_of(self, turn: JournalStep) -> Answer | None:
        if not turn.calls:
            return Answer(turn.text, "answered")
        batch = self._client.submit_calls(turn.calls, turn_id=turn.turn_id)
        if self._hooks.on_batch:
            self._hooks.on_batch(batch)
        batch.wait(self._terms.wait_s)
        if batch.any_pending:
            return Answer(self._said(MessageCode.STILL_RUNNING), "running", batch=batch)
        gives_up = any(outcome.has_repeated_argument_error for outcome in batch.outcomes)
        said = "\n".join(batch.for_user(self._terms.locale)) if gives_up else ""
        reply_ids = tuple(outcome.reply_id for outcome in batch.outcomes)
        self._journal.add(JournalStep("results", tuple(batch.replies(self._dialect)), text=said, reply_ids=reply_ids))
        return None

    def _said(self, code: MessageCode) -> str:
        return self._terms.translations.text(code, self._terms.locale)
