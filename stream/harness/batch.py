"""What a harness holds after a submission: the outcomes so far, waiting for more, and the way back to the provider.

Decides what a change of a batch is and which channels tell of it. Must not know how turns are decoded or submitted.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...store.connections.handler_context import refuse_to_wait
from ...store.connections.replication import acknowledged, needed_replicas, note_replicas
from ...store.model.errors import StoreMisuse, StoreWentBack
from ...store.model.outcomes import Outcome
from ...store.model.times import wait_limit
from ...store.operations import queries
from ...store.operations.fence_watermark import contradicted, fence_watermark
from ...store.operations.operation import Invocation
from ...store.operations.query import Acknowledged
from ..replies.answers import for_model
from ..replies.call_ids import IdForm
from ..replies.protocol import Message
from ..replies.translations import FALLBACK
from ..replies.user_text import for_user
from ..turns.turn import Dialect, TurnResult
from .history import history, replies
from .submission import SubmissionTerms

if TYPE_CHECKING:
    from .client import Client


class BatchView:
    """What a batch shows without asking the store: the same for the blocking and the async client.

    Attributes:
        turn_id: what the turn was submitted under; with the scope it is the handle that `Client.batch` takes.
        outcomes: one per call, in call order, as last read.
        turn: the decoded turn it was submitted from; None where it was picked up by its turn id.
    """

    def __init__(
        self, terms: SubmissionTerms, turn_id: str, outcomes: Sequence[Outcome], turn: TurnResult | None
    ) -> None:
        self._terms = terms
        self.turn_id = turn_id
        self.turn = turn
        self.outcomes = tuple(outcomes)
        self._told_of: set[str] = set()
        terms.watermark.note_all(outcomes)

    @property
    def any_pending(self) -> bool:
        """True while an answer may still come without anyone asking."""
        return any(outcome.pending for outcome in self.outcomes)

    def replies(self, dialect: Dialect | None = None, *, ids: IdForm = "paired") -> list[Message]:
        """One provider-shaped result per call, to append after `history`, whose ids are the same for the same `ids`."""
        chosen, came_in = self._dialects(dialect)
        return replies(self.outcomes, chosen, turn_id=self.turn_id, came_in=came_in, ids=ids)

    def history(self, dialect: Dialect | None = None, *, ids: IdForm = "paired") -> list[Message]:
        """The assistant message to append before the replies.

        Raises:
            StoreMisuse: the batch was picked up by its turn id; the turn's text is not stored.
        """
        if self.turn is None:
            raise StoreMisuse("history() needs the turn itself; keep it in the harness, or decode it again")
        return history(self.turn, self._dialects(dialect)[0], turn_id=self.turn_id, outcomes=self.outcomes, ids=ids)

    def for_model(self) -> tuple[str, ...]:
        """What the model is told about each call, as plain text, in call order."""
        return tuple(for_model(outcome) for outcome in self.outcomes)

    def for_user(self, locale: str = FALLBACK) -> tuple[str, ...]:
        """What a user is told about each call, in call order: what ran, what did not, what nobody knows."""
        return tuple(for_user(outcome, locale) for outcome in self.outcomes)

    def _contradicted(self, fresh: Sequence[Outcome]) -> Invocation[int] | None:
        """What the store is to be told of the calls of which it says less than before, each once; None for nothing."""
        found = {outcome.key: outcome for outcome in fresh}
        lost = [
            told
            for told in self.outcomes
            if not told.conflict and told.key not in self._told_of and contradicted(told, found.get(told.key))
        ]
        self._told_of.update(told.key for told in lost)
        return fence_watermark(self._terms.space, self._terms.watermark.seen, lost) if lost else None

    def _take(self, fresh: Sequence[Outcome]) -> tuple[Outcome, ...]:
        self._terms.watermark.note_all(fresh)
        self.outcomes = merged(self.outcomes, fresh)
        if gone := {told.key for told in self.outcomes if told.pending and told.state} - {
            outcome.key for outcome in fresh
        }:
            raise StoreWentBack(
                f"call {min(gone)} of turn {self.turn_id!r} is stored no longer: the store has lost writes, and nobody "
                "knows what became of it; submit the turn again, which holds it until a person has compared"
            )
        return self.outcomes

    def _barrier(self, needed: int) -> Acknowledged[tuple[int, int]]:
        """A write that tells how many replicas have everything before it."""
        return acknowledged(note_replicas(self._terms.space), needed)

    def _note_replicas(self, needed: int, heard: tuple[int, int]) -> None:
        """Say of each outcome whether enough replicas have it, as the barrier behind it heard."""
        told = {} if heard[1] >= needed else {"durable": False}
        self.outcomes = tuple(
            replace(one, marks={**{name: mark for name, mark in one.marks.items() if name != "durable"}, **told})
            for one in self.outcomes
        )

    @property
    def _turn_keys(self) -> list[str]:
        """This turn's, and those of the earlier turns in which intent keys found a call."""
        turn_ids = (self.turn_id, *(outcome.turn_id for outcome in self.outcomes if outcome.turn_id))
        return [self._terms.turn(turn_id).key for turn_id in dict.fromkeys(turn_ids)]

    @property
    def _channels(self) -> list[str]:
        return [self._terms.space.wake_channel(key) for key in self._turn_keys]

    def _dialects(self, dialect: Dialect | None) -> tuple[Dialect, Dialect | None]:
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

    def wait(self, timeout: float | None = None, *, durable: bool = False) -> tuple[Outcome, ...]:
        """Wait until every call is settled or unknown; when the time is up, pending ones say so.

        A wait limit is no error: the work goes on, and `Client.batch(turn_id)` picks it up later, in any process.

        Args:
            timeout: seconds; None waits for ever, 0 not at all.
            durable: ask the replicas as well, up to a second: each outcome says then whether a failover may forget it
                (`Outcome.is_durable`). One write and two round trips more.

        Raises:
            ValueError: the timeout is negative, NaN or infinite.
            StoreUnavailable: Redis did not answer; the calls go on, and waiting again is safe.
            StoreWentBack: a call that had not come to rest is stored no longer; no answer will come.
        """
        for _ in self._changes(timeout):
            pass
        if durable:
            run = self._client.run
            needed = run(needed_replicas(self._terms.space))
            self._note_replicas(needed, run(self._barrier(needed)))
        return self.outcomes

    def as_completed(self, timeout: float | None = None) -> Iterator[Outcome]:
        """Each outcome once, as its call comes to rest; those still pending when the time is up are not given."""
        seen: dict[int, Outcome] = {}
        for outcomes in self._changes(timeout):
            yield from changes(seen, (outcome for outcome in outcomes if not outcome.pending))

    def events(self, timeout: float | None = None) -> Iterator[Outcome]:
        """Each outcome at once, and again whenever more is known of it: a running handler's progress
        (``marks["progress"]``), then how the call came to rest."""
        seen: dict[int, Outcome] = {}
        for outcomes in self._changes(timeout):
            yield from changes(seen, outcomes)

    def refresh(self) -> tuple[Outcome, ...]:
        """Read what is known now.

        Raises:
            StoreWentBack: a call that had not come to rest is stored no longer.
        """
        read = [self._client.run(queries.turn(self._terms.space, key)) for key in self._turn_keys]
        fresh = [outcome for outcomes in read for outcome in outcomes]
        if news := self._contradicted(fresh):
            self._client.run(news)
        return self._take(fresh)

    def _changes(self, timeout: float | None) -> Iterator[tuple[Outcome, ...]]:
        """The outcomes each time something happened to one, until nothing is pending or the time is up."""
        wait_limit("timeout", timeout)
        yield self.outcomes
        if not self.any_pending:
            return
        refuse_to_wait()
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
    """The fresh outcomes of the calls that were asked for, in their places; a conflict is an answer and stays, and so
    does what was settled, where the store has forgotten it."""
    found = {outcome.key: outcome for outcome in fresh}
    return tuple(old if _stays(old, found.get(old.key)) else _placed(found[old.key], old) for old in before)


def _stays(old: Outcome, fresh: Outcome | None) -> bool:
    return old.conflict or old.replayed or fresh is None or (old.settled and contradicted(old, fresh))


def changes(seen: dict[int, Outcome], outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """The outcomes that differ from those seen before, noted as seen."""
    for outcome in outcomes:
        if seen.get(outcome.position) != outcome:
            seen[outcome.position] = outcome
            yield outcome


def _placed(fresh: Outcome, old: Outcome) -> Outcome:
    """The fresh outcome under the id and place of the call of this turn; see ``submission``."""
    return replace(fresh, call_id=old.call_id, reply_id=old.reply_id, position=old.position, echo=old.echo)
