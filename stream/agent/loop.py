"""The loop of a conversation: question -> turn -> calls -> results -> turn ... -> answer, for every dialect.

Decides the order of the steps. Each step is stored before the next one acts, so that a harness that was killed
continues where it was and nothing runs twice. Sans-IO: it yields steps and is sent what came of them, so that the
blocking and the async conversation share it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Generic, Literal, Protocol, TypeVar

from ...store.operations.operation import Operation
from ..dialects.request import taking_turns, user_message
from ..dialects.table import spec_of
from ..harness.batch import BatchView
from ..harness.history import assistant_messages
from ..harness.journal import Journal, JournalStep
from ..harness.submission import SubmissionTerms
from ..replies.protocol import Message
from ..replies.translations import MessageCode
from ..replies.user_text import for_user
from ..turns.turn import Dialect, RejectedCall, ToolCall, TurnResult
from .terms import AnswerEnd, Terms
from .trimming import require_pairs

A = TypeVar("A")
MadeT = TypeVar("MadeT", covariant=True)


@dataclass(frozen=True, slots=True)
class ReadTurn:
    """Ask the model for the next turn. Is sent the `TurnResult`.

    Attributes:
        messages: the whole history; adjacent messages of one role are not joined yet.
    """

    messages: list[Message]


@dataclass(frozen=True, slots=True)
class RunCalls:
    """Submit the calls of a turn and wait for them. Is sent their batch."""

    calls: tuple[ToolCall | RejectedCall, ...]
    turn_id: str


Step = Operation[Any] | ReadTurn | RunCalls
Steps = Generator[Step, Any, A]


class MakeAnswer(Protocol[MadeT]):
    """The class of the answers."""

    def __call__(self, text: str, ended: AnswerEnd, turn: TurnResult | None = None, batch: Any = None) -> MadeT: ...


class Loop(Generic[A]):
    """One conversation, in the scope of these terms of submission. ``answer`` is the class of its answers."""

    def __init__(
        self,
        owner: SubmissionTerms,
        dialect: Dialect,
        terms: Terms,
        answer: MakeAnswer[A],
        history: Sequence[Message] = (),
    ) -> None:
        require_pairs(history, dialect, "history")
        self._dialect = dialect
        self._terms = terms
        self._answer = answer
        self._history = tuple(_kept(list(history)))
        self._journal = Journal(owner)

    @property
    def messages(self) -> list[Message]:
        """The history in the provider's form."""
        return taking_turns(self._messages, self._dialect)

    @property
    def _messages(self) -> list[Message]:
        entries = self._journal.entries
        after = zip_longest(entries, entries[1:])
        said = (
            entry.messages or self._written(entry, following.reply_ids if following else ())
            for entry, following in after
        )
        return [message for messages in said for message in messages] if entries else list(self._history)

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

    def say(self, content: str | Sequence[Message], step: str) -> Steps[A]:
        """The steps that ask a question."""
        [asked] = _kept([user_message(content, self._dialect)])
        yield from self._journal.read()
        while not self._journal.has_step(step):  # again, where another harness wrote first
            last = self._journal.entries[-1] if self._journal.entries else None
            before = (yield from self._calls_of(last)) if last and last.calls else None
            if before is not None:
                return before  # calls of the question before still run
            begins = last is None and self._history
            entry = JournalStep("history", self._history) if begins else JournalStep("question", (asked,), step=step)
            yield from self._journal.add(entry)
        match self._journal.end_of(step):
            case JournalStep(kind="turn", text=said):
                return self._answer(said, "answered")
            case JournalStep(kind="results", text=said) if said:
                return self._answer(said, "gave_up")
        return (yield from self._go_on())

    def resume(self) -> Steps[A]:
        """The steps that go on where any harness has stopped."""
        yield from self._journal.read()
        if not any(entry.kind == "question" for entry in self._journal.entries):
            raise ValueError("this conversation has not begun: call say() first")
        return (yield from self._go_on())

    def _go_on(self) -> Steps[A]:
        for _ in range(2 * self._terms.turns):
            last = self._journal.entries[-1]
            answer = yield from (self._calls_of(last) if last.kind == "turn" else self._next_turn(last))
            if answer is not None:
                return answer
        return self._answer(self._said(MessageCode.TURN_UNUSABLE), "gave_up")

    def _next_turn(self, last: JournalStep) -> Steps[A | None]:
        if last.kind == "results" and last.text:
            return self._answer(last.text, "gave_up")
        turn: TurnResult = yield ReadTurn(self._messages)
        if turn.outcome not in ("completed", "paused"):
            said = for_user(turn, self._terms.locale, translations=self._terms.translations)
            return self._answer(said, "no_turn", turn)
        turn_id = uuid.uuid4().hex
        calls: list[ToolCall | RejectedCall] = sorted((*turn.calls, *turn.rejected), key=lambda call: call.position)
        kind: Literal["paused", "turn"] = "paused" if turn.outcome == "paused" else "turn"
        yield from self._journal.add(
            JournalStep(kind, (), tuple(calls), turn.text, turn_id=turn_id, assistant=turn.assistant, order=turn.order)
        )
        return None

    def _calls_of(self, turn: JournalStep) -> Steps[A | None]:
        if not turn.calls:
            return self._answer(turn.text, "answered")
        batch: BatchView = yield RunCalls(turn.calls, turn.turn_id)
        if batch.is_held:
            waiting = [for_user(held, self._terms.locale, translations=self._terms.translations) for held in batch.held]
            return self._answer("\n".join(waiting), "held", batch=batch)
        if batch.any_pending:
            return self._answer(self._said(MessageCode.STILL_RUNNING), "running", batch=batch)
        gives_up = any(outcome.has_repeated_argument_error for outcome in batch.outcomes)
        said = "\n".join(batch.for_user(self._terms.locale)) if gives_up else ""
        reply_ids = tuple(outcome.reply_id for outcome in batch.outcomes)
        yield from self._journal.add(
            JournalStep("results", tuple(batch.replies(self._dialect)), text=said, reply_ids=reply_ids)
        )
        return None

    def _said(self, code: MessageCode) -> str:
        return self._terms.translations.text(code, self._terms.locale)


def _kept(messages: list[Message]) -> list[Message]:
    """The messages as the journal has them.

    Raises:
        TypeError: they are not JSON.
    """
    try:
        kept: list[Message] = json.loads(json.dumps(messages))
    except TypeError as error:
        raise TypeError(f"messages are kept as JSON, and bytes are given as base64 text: {error}") from error
    return kept
