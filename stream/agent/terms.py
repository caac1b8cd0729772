"""What a conversation is given, and what it answers: terms, hooks, answers.

Values without behaviour. Must not know how the loop runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from ...store.model.outcomes import Outcome
from ...store.model.times import wait_limit
from ..harness.async_client import AsyncBatch
from ..harness.batch import Batch
from ..provider.retry import Budget, Observers, RequestOptions
from ..replies.protocol import Message
from ..replies.translations import FALLBACK, TRANSLATIONS, Translations
from ..turns.turn import TurnResult

AnswerEnd = Literal["answered", "running", "held", "gave_up", "no_turn"]


@dataclass(frozen=True, slots=True)
class Hooks:
    """The functions that a conversation calls as it goes.

    Attributes:
        observers: what `read_turn` takes.
        on_turn: gets each turn that came.
        on_batch: gets the submitted calls of a turn.
        on_outcome: gets each event of these calls: held, queued, running, progress, outcomes; as `Batch.events`. It
            may approve and deny.
        trim: gets the history before each request, in groups of messages that belong together: a question; or a turn
            with the results of its calls. It answers the groups to send: fewer, or own ones, such as a summary. What is
            stored stays whole. Most providers want a question first: ``[groups[0], *groups[-9:]]``.
    """

    observers: Observers = field(default_factory=Observers)
    on_turn: Callable[[TurnResult], None] | None = None
    on_batch: Callable[[Batch], None] | None = None
    on_outcome: Callable[[Outcome], None] | None = None
    trim: Callable[[list[list[Message]]], Sequence[Sequence[Message]]] | None = None


@dataclass(frozen=True, slots=True)
class AsyncHooks:
    """The functions that an `AsyncConversation` calls, plain or coroutine functions; see `Hooks`."""

    observers: Observers = field(default_factory=Observers)
    on_turn: Callable[[TurnResult], Awaitable[None] | None] | None = None
    on_batch: Callable[[AsyncBatch], Awaitable[None] | None] | None = None
    on_outcome: Callable[[Outcome], Awaitable[None] | None] | None = None
    trim: (
        Callable[[list[list[Message]]], Sequence[Sequence[Message]] | Awaitable[Sequence[Sequence[Message]]]] | None
    ) = None


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

    @property
    def request(self) -> RequestOptions:
        """The properties of the request that are needed to read its response."""
        return {"max_tokens": self.max_tokens, "trust_done": self.trust_done}


class ConversationOptions(TypedDict, total=False):
    """The options of `Conversation`.

    Attributes:
        terms: how the loop runs.
        hooks: the functions that are called as it goes.
        history: messages in the provider's form from before this conversation. They are stored when it begins; later
            only the stored ones count, so that passing them again does no harm.
    """

    terms: Terms
    hooks: Hooks
    history: Sequence[Message]


class AsyncConversationOptions(TypedDict, total=False):
    """The options of `AsyncConversation`; see `ConversationOptions`."""

    terms: Terms
    hooks: AsyncHooks
    history: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Answer:
    """The text for the user, and why the loop ended.

    Attributes:
        text: what the model said, or what the user is told in its place.
        ended: ``answered``: by the model; ``running``: calls still run, call `resume` later; ``held``: only people can
            move the calls on, see `held`; ``gave_up``: the model could not use a tool, or took too many turns;
            ``no_turn``: the provider gave none, the history is unchanged.
        turn: the turn that ended the loop, where this call read it.
        batch: the calls that ended the loop.
    """

    text: str
    ended: AnswerEnd
    turn: TurnResult | None = None
    batch: Batch | None = None

    @property
    def held(self) -> tuple[Outcome, ...]:
        """The calls that wait for a person: show them, `approve` or `deny`, then `resume`."""
        return self.batch.held if self.batch else ()


@dataclass(frozen=True, slots=True)
class AsyncAnswer:
    """The text for the user, and why the loop of an `AsyncConversation` ended; see `Answer`."""

    text: str
    ended: AnswerEnd
    turn: TurnResult | None = None
    batch: AsyncBatch | None = None

    @property
    def held(self) -> tuple[Outcome, ...]:
        """The calls that wait for a person; as `Answer.held`."""
        return self.batch.held if self.batch else ()
