"""A small reference loop: question -> turn -> calls -> results -> turn ... -> answer, for every dialect.

Decides the order of the steps, and that each is written down before the next one acts: a harness that was killed goes
on where it was, and nothing runs twice. Sends nothing itself: the caller opens the responses. It needs no provider SDK.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from .attempt import Opener
from .batch import Batch
from .catalogue import CATALOGUE, FALLBACK, Catalogue, MessageCode
from .client import Client
from .errors import UnknownDialect
from .journal import Entry, Journal
from .messages import for_user
from .provider import Budget, Watch, read_turn
from .replies import history
from .reply_shape import Message
from .turn import RejectedCall, ToolCall, TurnResult

# The member of a request that holds the history.
_HISTORY = {
    "anthropic": "messages",
    "openai-chat": "messages",
    "openai-responses": "input",
    "google-generate": "contents",
    "google-interactions": "input",
}
Ended = Literal["answered", "running", "gave_up", "no_turn"]


def user_message(dialect: str, text: str) -> Message:
    """What a user says, in the dialect's shape."""
    match dialect:
        case "google-generate":
            return {"role": "user", "parts": [{"text": text}]}
        case "google-interactions":
            return {"type": "user_input", "content": [{"type": "text", "text": text}]}
        case _:
            return {"role": "user", "content": text}


def request_body(dialect: str, base: Mapping[str, Any], messages: Sequence[Message]) -> dict[str, Any]:
    """A request for a streamed turn: `base` (model, tools, ...) with the history in its place.

    Raises:
        UnknownDialect: no such dialect.
    """
    if dialect not in _HISTORY:
        raise UnknownDialect(f"no dialect {dialect!r}; there are {', '.join(_HISTORY)}")
    streamed = {} if dialect == "google-generate" else {"stream": True}  # there the path says it
    return {**base, _HISTORY[dialect]: list(messages), **streamed}


@dataclass(frozen=True, slots=True)
class Hooks:
    """Who looks on. Drafts, lost attempts and the stop are in ``watch``."""

    watch: Watch = field(default_factory=Watch)
    on_turn: Callable[[TurnResult], None] | None = None
    on_batch: Callable[[Batch], None] | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """How the loop runs.

    Attributes:
        locale: of the local messages.
        wait_s: how long calls are waited for before the answer is "still running"; None for ever.
        turns: most turns for one question; a model that goes round in circles is stopped.
    """

    locale: str = FALLBACK
    wait_s: float | None = 300.0
    turns: int = 20
    budget: Budget = field(default_factory=Budget)
    catalogue: Catalogue = CATALOGUE


@dataclass(frozen=True, slots=True)
class Answer:
    """What a user gets to see, and why the loop ended.

    Attributes:
        ended: ``answered`` by the model; ``running``: calls go on, ask `resume` later; ``gave_up``: the model could
            not use a tool, or took too many turns; ``no_turn``: the provider gave none, the history is as it was.
        turn: the turn that ended it, where it was read now.
        batch: the calls that ended it.
    """

    text: str
    ended: Ended
    turn: TurnResult | None = None
    batch: Batch | None = None


class Conversation:
    """One conversation, in the scope of its client.

    Args:
        ask: makes an opener for the history so far: ``lambda messages: sending(http, http.build_request(...))``.
    """

    def __init__(
        self,
        client: Client,
        dialect: str,
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
        self._watch = replace(hooks.watch, on_aborted=hooks.watch.on_aborted or client.note_aborted)
        self._journal = Journal(client)

    @property
    def messages(self) -> list[Message]:
        """The history, in the provider's shape."""
        return self._journal.messages

    def say(self, text: str, *, step: str) -> Answer:
        """Ask a question and go on until there is an answer. The same `step` again asks nothing anew."""
        self._journal.read()
        if self._journal.has_step(step):
            return self._go_on()
        if self._journal.entries and (last := self._journal.entries[-1]).calls:
            before = self._calls_of(last)
            if before is not None and before.ended == "running":
                return before  # the history has no place for the question yet
        self._journal.add(Entry("question", (user_message(self._dialect, text),), step=step))
        return self._go_on()

    def resume(self) -> Answer:
        """Go on where this conversation was left, by whomever.

        Raises:
            ValueError: it has not begun.
        """
        self._journal.read()
        if not self._journal.entries:
            raise ValueError("this conversation has not begun: say something")
        return self._go_on()

    def _go_on(self) -> Answer:
        for _ in range(2 * self._terms.turns):
            last = self._journal.entries[-1]
            answer = self._calls_of(last) if last.kind == "turn" else self._next_turn(last)
            if answer is not None:
                return answer
        return Answer(self._said(MessageCode.TURN_UNUSABLE), "gave_up")

    def _next_turn(self, last: Entry) -> Answer | None:
        if last.kind == "results" and last.text:
            return Answer(last.text, "gave_up")
        opener = self._ask(self.messages)
        turn = read_turn(opener, self._dialect, budget=self._terms.budget, watch=self._watch)
        if self._hooks.on_turn:
            self._hooks.on_turn(turn)
        if turn.outcome not in ("completed", "paused"):
            return Answer(for_user(turn, self._terms.locale, catalogue=self._terms.catalogue), "no_turn", turn)
        messages = tuple(history(self._dialect, turn, turn_id=self._turn_id(len(self._journal.entries))))
        calls: list[ToolCall | RejectedCall] = sorted((*turn.calls, *turn.rejected), key=lambda call: call.position)
        kind: Literal["paused", "turn"] = "paused" if turn.outcome == "paused" else "turn"
        self._journal.add(Entry(kind, messages, tuple(calls), turn.text))
        return None

    def _calls_of(self, turn: Entry) -> Answer | None:
        if not turn.calls:
            return Answer(turn.text, "answered")
        batch = self._client.submit_calls(turn.calls, turn_id=self._turn_id(len(self._journal.entries) - 1))
        if self._hooks.on_batch:
            self._hooks.on_batch(batch)
        batch.wait(self._terms.wait_s)
        if batch.any_pending:
            return Answer(self._said(MessageCode.STILL_RUNNING), "running", batch=batch)
        slipped = any(outcome.is_repeated_slip for outcome in batch.outcomes)
        said = "\n".join(batch.for_user(self._terms.locale)) if slipped else ""
        self._journal.add(Entry("results", tuple(batch.replies(self._dialect)), text=said))
        return None

    def _turn_id(self, number: int) -> str:
        """Our own step id: the turn's place in the journal, which is the same for whoever goes on."""
        return f"conversation:{number}"

    def _said(self, code: MessageCode) -> str:
        return self._terms.catalogue.text(code, self._terms.locale)
