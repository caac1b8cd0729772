"""The blocking client: submit a turn, wait for its outcomes, get the provider's replies.

Rules are `submission`'s; this file only drives them over a connection. `async_client` is the same over asyncio.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..store import operators, reading
from ..store.connection import Connection
from ..store.errors import StoreMisuse
from ..store.keyring import Keyring
from ..store.outcomes import Outcome
from ..store.scripts import Invocation
from ..store.waiting import Wakeups
from .replies import history, replies
from .reply_shape import Message
from .submission import Intent, SpecCache, Submitting, Terms, asked, asked_of, usable_turn_id
from .turn import RejectedCall, ToolCall, TurnResult

URL_VARIABLE = "TOOLONCE_REDIS_URL"
T = TypeVar("T")


class Client:
    """A harness's door. Safe to share between threads; one connection serves any number of waiters.

    Args:
        url: of the Redis; ``TOOLONCE_REDIS_URL`` where it is left out.
        scope: the tenant and conversation in which turn ids are unique. From your credentials, never from the model.
        tenant: whose limits count; by default the scope up to the first ``/``.
        keyring: by default the keys in ``TOOLONCE_KEYS``.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        scope: str,
        namespace: str = "toolonce",
        tenant: str = "",
        keyring: Keyring | None = None,
    ) -> None:
        self._connection = Connection(url or url_from_environment(), namespace=namespace)
        keys = keyring if keyring is not None else Keyring.from_environment()
        self.terms = Terms(self._connection.space, scope, tenant, keys)
        self._specs = SpecCache()
        self._wakeups = Wakeups(self._connection)

    def submit(
        self, turn: TurnResult, *, turn_id: str | None = None, intent: Intent = None, ordered: bool = False
    ) -> Batch:
        """Have the calls of a completed turn run, once each. Safe to repeat: what is known is answered.

        Args:
            turn_id: your own step id; by default the provider's id of the turn.
            intent: a key of your own for a call that a regenerated turn asks for again, or position -> key.
            ordered: run the calls of this turn strictly one after the other.

        Raises:
            TurnError: the turn did not complete, so none of its calls runs.
            TurnIdMissing, NoToolsPublished, KeyringMissing, StoreFull, StoreUnavailable: see `store.errors`.
        """
        calls = asked_of(turn)
        usable = usable_turn_id(turn_id, turn.turn_id)
        return self._drive(Submitting(self.terms, usable, tuple(calls), intent, ordered), turn)

    def submit_calls(
        self,
        calls: Iterable[ToolCall | RejectedCall],
        *,
        turn_id: str,
        intent: Intent = None,
        ordered: bool = False,
    ) -> Batch:
        """The same for calls that the harness holds already, in call order; it vouches that their turn completed."""
        usable = usable_turn_id(turn_id, None)
        return self._drive(Submitting(self.terms, usable, tuple(asked(call) for call in calls), intent, ordered))

    def batch(self, turn_id: str) -> Batch:
        """The calls of a turn that was submitted before, by this process or another one.

        Raises:
            StoreMisuse: nothing was admitted under this turn id in this scope.
        """
        outcomes = self.run(reading.turn(self.terms.space, self.terms.turn(turn_id).key))
        if not outcomes:
            raise StoreMisuse(f"no calls are stored for turn {turn_id!r} in scope {self.terms.scope!r}")
        return Batch(self, turn_id, outcomes)

    def cancel(self, key: str, *, actor: str = "harness", reason: str = "") -> operators.Done:
        """Cancel a call before it starts, or ask for a stop of one that runs; see `operators.cancel`."""
        word = operators.Word(actor, reason)
        return self.run(operators.cancel(self.terms.space, operators.Seen(key), word))

    def approve(self, outcome: Outcome, *, actor: str, reason: str = "") -> operators.Done:
        """Approve the call that was shown as this outcome; bound to its idempotency key."""
        word = operators.Word(actor, reason)
        return self.run(operators.approve(self.terms.space, outcome.key, outcome.idempotency_key, word))

    def deny(self, outcome: Outcome, *, actor: str, reason: str = "") -> operators.Done:
        """Deny the call that was shown as this outcome."""
        word = operators.Word(actor, reason)
        return self.run(operators.deny(self.terms.space, outcome.key, outcome.idempotency_key, word))

    def run(self, invocation: Invocation[T]) -> T:
        """Run one store operation; for tools that look deeper than a harness does."""
        return self._connection.run(invocation)

    def wakeups(self) -> Wakeups:
        return self._wakeups

    def close(self) -> None:
        self._wakeups.close()
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _drive(self, submitting: Submitting, turn: TurnResult | None = None) -> Batch:
        return Batch(self, submitting.turn_id, drive(self._connection, submitting.steps(self._specs)), turn)


class BatchView:
    """What a batch shows without asking the store: the same for the blocking and the async client.

    Attributes:
        outcomes: one per call, in call order, as last read.
        turn: the decoded turn it was submitted from; None where it was picked up by its turn id.
    """

    def __init__(self, terms: Terms, turn_id: str, outcomes: Sequence[Outcome], turn: TurnResult | None) -> None:
        self._terms = terms
        self.turn_id = turn_id
        self.turn = turn
        self.outcomes = tuple(outcomes)

    @property
    def any_pending(self) -> bool:
        """True while an answer may still come without anyone asking."""
        return any(outcome.pending for outcome in self.outcomes)

    def replies(self, dialect: str | None = None) -> list[Message]:
        """One provider-shaped result per call, to append after `history`."""
        chosen, came_in = self._dialects(dialect)
        return replies(chosen, self.outcomes, turn_id=self.turn_id, came_in=came_in)

    def history(self, dialect: str | None = None) -> list[Message]:
        """The assistant message to append before the replies.

        Raises:
            StoreMisuse: the batch was picked up by its turn id; the turn's text is not stored.
        """
        if self.turn is None:
            raise StoreMisuse("history() needs the turn itself; keep it in the harness, or decode it again")
        return history(self._dialects(dialect)[0], self.turn, turn_id=self.turn_id)

    @property
    def _turn_keys(self) -> list[str]:
        """This turn, and those that admitted a pending call which was found by its intent key."""
        earlier = {outcome.turn_id for outcome in self.outcomes if outcome.pending and outcome.turn_id}
        return [self._terms.turn(turn_id).key for turn_id in sorted({self.turn_id, *earlier})]

    @property
    def _channels(self) -> list[str]:
        return [self._terms.space.wake_channel(key) for key in self._turn_keys]

    def _dialects(self, dialect: str | None) -> tuple[str, str | None]:
        came_in = self.turn.dialect if self.turn else None
        chosen = dialect or came_in
        if chosen is None:
            raise StoreMisuse("name the dialect: this batch was not made from a decoded turn")
        return chosen, came_in


class Batch(BatchView):
    """The calls of one turn and what became of them so far, in call order."""

    def __init__(
        self, client: Client, turn_id: str, outcomes: Sequence[Outcome], turn: TurnResult | None = None
    ) -> None:
        super().__init__(client.terms, turn_id, outcomes, turn)
        self._client = client

    def wait(self, timeout: float | None = None) -> tuple[Outcome, ...]:
        """Wait until every call is settled or unknown; when the time is up, pending ones say so.

        A wait limit is no error: the work goes on, and `Client.batch(turn_id)` picks it up later, in any process.
        """
        for _ in self._changes(timeout):
            pass
        return self.outcomes

    def as_completed(self, timeout: float | None = None) -> Iterator[Outcome]:
        """Each outcome once, as its call comes to rest; those still pending when the time is up are not given."""
        given: set[str] = set()
        for outcomes in self._changes(timeout):
            for outcome in outcomes:
                if not outcome.pending and outcome.key not in given:
                    given.add(outcome.key)
                    yield outcome

    def refresh(self) -> tuple[Outcome, ...]:
        """Read what is known now."""
        for key in self._turn_keys:
            self.outcomes = merged(self.outcomes, self._client.run(reading.turn(self._terms.space, key)))
        return self.outcomes

    def _changes(self, timeout: float | None) -> Iterator[tuple[Outcome, ...]]:
        """The outcomes each time something came to rest, until nothing is pending or the time is up."""
        yield self.outcomes
        if not self.any_pending:
            return
        until = None if timeout is None else time.monotonic() + timeout
        with self._client.wakeups().watch(*self._channels) as bell:
            while self.any_pending:
                left = None if until is None else max(0.0, until - time.monotonic())
                rang = bell.wait(left)
                bell.clear()
                yield self.refresh()
                if not rang:
                    return


def merged(before: Sequence[Outcome], fresh: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """The fresh outcomes of the calls that were asked for, in their places; a conflict is an answer and stays."""
    found = {outcome.key: outcome for outcome in fresh}
    return tuple(old if old.conflict or old.replayed else _placed(found.get(old.key, old), old) for old in before)


def _placed(fresh: Outcome, old: Outcome) -> Outcome:
    """The fresh outcome under the id and place of the call of this turn; see ``submission``."""
    return replace(fresh, call_id=old.call_id, position=old.position, echo=old.echo)


def drive(connection: Connection, steps: Generator[Invocation[Any], Any, tuple[Outcome, ...]]) -> tuple[Outcome, ...]:
    """Run the operations that a generator yields, one after the other."""
    answer: Any = None
    while True:
        try:
            operation = steps.send(answer)
        except StopIteration as stop:
            outcomes: tuple[Outcome, ...] = stop.value
            return outcomes
        answer = connection.run(operation)


def url_from_environment() -> str:
    """Raises StoreMisuse where neither a URL nor the variable is given."""
    url = os.environ.get(URL_VARIABLE)
    if not url:
        raise StoreMisuse(f"no Redis named: pass url= or set {URL_VARIABLE}")
    return url
