"""A batch: the calls of one submission, their outcomes so far, waiting for more, and replies to the provider.

Decides what counts as a change, and which channels announce changes. Must not know how turns are decoded or submitted.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...store.connections.replication import acknowledged, needed_replicas, note_replicas
from ...store.connections.waiting import refuse_to_wait
from ...store.model.errors import StoreMisuse, StoreWentBack
from ...store.model.outcomes import Outcome
from ...store.model.times import wait_limit
from ...store.operations import queries
from ...store.operations.fence_watermark import contradicted, fence_watermark
from ...store.operations.operation import Acknowledged, Invocation
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
    """The part of a batch that needs no store, the same for the blocking and the async client.

    Attributes:
        turn_id: the id under which the turn was submitted; `Client.batch` takes it in the same scope.
        outcomes: one per call, in call order, as last read.
        turn: the decoded turn; None where the batch was found by its turn id.
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
        """Whether any call still waits or runs, so that an outcome will come by itself."""
        return any(outcome.pending for outcome in self.outcomes)

    @property
    def held(self) -> tuple[Outcome, ...]:
        """The calls that wait for a person: for an approval, or for a comparison after the store went back.

        `Client.approve` and `deny` move them on, and on the command line ``approve``, ``deny`` and ``resolve``.
        """
        return tuple(outcome for outcome in self.outcomes if outcome.waits_for_a_person)

    @property
    def is_held(self) -> bool:
        """Whether nothing but a person moves this batch on: each call that is not at rest is one of `held`."""
        pending = [outcome for outcome in self.outcomes if outcome.pending]
        return bool(pending) and all(outcome.waits_for_a_person for outcome in pending)

    def replies(self, dialect: Dialect | None = None, *, ids: IdForm = "paired") -> list[Message]:
        """One result per call in the provider's form, to append after `history` with the same `ids`."""
        chosen, came_in = self._dialects(dialect)
        return replies(self.outcomes, chosen, turn_id=self.turn_id, came_in=came_in, ids=ids)

    def history(self, dialect: Dialect | None = None, *, ids: IdForm = "paired") -> list[Message]:
        """The assistant message to append before the replies.

        Raises:
            StoreMisuse: the batch was found by its turn id; the store does not keep the text of a turn.
        """
        if self.turn is None:
            raise StoreMisuse("history() needs the decoded turn: keep it in the harness, or decode the response again")
        return history(self.turn, self._dialects(dialect)[0], turn_id=self.turn_id, outcomes=self.outcomes, ids=ids)

    def for_model(self) -> tuple[str, ...]:
        """What the model is told about each call, as plain text, in call order."""
        return tuple(for_model(outcome) for outcome in self.outcomes)

    def for_user(self, locale: str = FALLBACK) -> tuple[str, ...]:
        """The message for the user about each call, in call order: it ran, it did not run, or nobody knows."""
        return tuple(for_user(outcome, locale) for outcome in self.outcomes)

    def _contradicted(self, fresh: Sequence[Outcome]) -> Invocation[int] | None:
        """The operation that reports calls of which the store knows less than before, each once; None where there
        are none."""
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
                f"call {min(gone)} of turn {self.turn_id!r} is no longer stored: the store has lost writes, and the "
                "outcome is not known; submit the turn again, which holds the call until a person has compared"
            )
        return self.outcomes

    def _barrier(self, needed: int) -> Acknowledged[tuple[int, int]]:
        """A write whose answer says how many replicas have all writes before it."""
        return acknowledged(note_replicas(self._terms.space), needed)

    def _note_replicas(self, needed: int, heard: tuple[int, int]) -> None:
        """Set for each outcome whether enough replicas have it, from the answer of the barrier."""
        told = {} if heard[1] >= needed else {"durable": False}
        self.outcomes = tuple(
            replace(one, marks={**{name: mark for name, mark in one.marks.items() if name != "durable"}, **told})
            for one in self.outcomes
        )

    @property
    def _turn_keys(self) -> list[str]:
        """The key of this turn, and of earlier turns in which intent keys found a call."""
        turn_ids = (self.turn_id, *(outcome.turn_id for outcome in self.outcomes if outcome.turn_id))
        return [self._terms.turn(turn_id).key for turn_id in dict.fromkeys(turn_ids)]

    @property
    def _channels(self) -> list[str]:
        return [self._terms.space.wake_channel(key) for key in self._turn_keys]

    def _dialects(self, dialect: Dialect | None) -> tuple[Dialect, Dialect | None]:
        came_in = self.turn.dialect if self.turn else None
        chosen = dialect or came_in
        if chosen is None:
            raise StoreMisuse("pass dialect=: this batch was not made from a decoded turn")
        return chosen, came_in


class Batch(BatchView):
    """The calls of one turn and their outcomes so far, in call order."""

    def __init__(
        self, client: Client, turn_id: str, outcomes: Sequence[Outcome], turn: TurnResult | None = None
    ) -> None:
        super().__init__(client.terms, turn_id, outcomes, turn)
        self._client = client

    def wait(self, timeout: float | None = None, *, durable: bool = False) -> tuple[Outcome, ...]:
        """Wait until every call is settled or unknown, or until `timeout`; pending outcomes then have no result.

        A timeout is not an error: the calls go on, and `Client.batch(turn_id)` finds them later, in any process.

        Args:
            timeout: seconds; None waits forever, 0 not at all.
            durable: also ask the replicas, for up to a second: each outcome then says whether a failover can lose it
                (`Outcome.is_durable`). Needs one more write and two more round trips.

        Raises:
            ValueError: the timeout is negative, NaN or infinite.
            StoreUnavailable: Redis did not answer; the calls go on, and waiting again is safe.
            StoreWentBack: a call that had not come to rest is no longer stored; no outcome will come.
        """
        for _ in self._changes(timeout):
            pass
        if durable:
            run = self._client.run
            needed = run(needed_replicas(self._terms.space))
            self._note_replicas(needed, run(self._barrier(needed)))
        return self.outcomes

    def as_completed(self, timeout: float | None = None) -> Iterator[Outcome]:
        """Each outcome once, as its call comes to rest. Calls that are pending at the timeout are left out."""
        seen: dict[str, Outcome] = {}
        for outcomes in self._changes(timeout):
            yield from changes(seen, (outcome for outcome in outcomes if not outcome.pending))

    def events(
        self, timeout: float | None = None, *, after: Iterable[Outcome] = (), until_held: bool = False
    ) -> Iterator[Outcome]:
        """Each outcome at once, and again at every change: held and for which reason (``marks["reason"]``), queued,
        running and how far (``marks["progress"]``), then the final outcome.

        Can be taken up again at any time, in any process (`Client.batch`): it begins with how the calls stand then.

        Args:
            timeout: seconds; the calls go on afterwards. None follows them to their end.
            after: outcomes that you have been told of; those that still stand are left out.
            until_held: end as soon as all calls that are not at rest wait for a person (`held`).

        Raises:
            StoreUnavailable, StoreWentBack: as for `wait`.
        """
        seen = {outcome.key: outcome for outcome in after}
        for outcomes in self._changes(timeout):
            yield from changes(seen, outcomes)
            if until_held and self.is_held:
                yield from changes(seen, self.refresh())  # it may have been approved meanwhile
                if self.is_held:
                    return

    def refresh(self) -> tuple[Outcome, ...]:
        """Read the outcomes now.

        Raises:
            StoreWentBack: a call that had not come to rest is no longer stored.
        """
        read = [self._client.run(queries.turn(self._terms.space, key)) for key in self._turn_keys]
        fresh = [outcome for outcomes in read for outcome in outcomes]
        if news := self._contradicted(fresh):
            self._client.run(news)
        return self._take(fresh)

    def _changes(self, timeout: float | None) -> Iterator[tuple[Outcome, ...]]:
        """The outcomes after each change, until none is pending or the timeout has passed."""
        wait_limit("timeout", timeout)
        told = self.outcomes
        yield told
        if not self.any_pending:
            if self.outcomes is not told:
                yield self.outcomes
            return
        refuse_to_wait()
        until = None if timeout is None else time.monotonic() + timeout
        with self._client.wakeups().watch(*self._channels) as bell:
            while self.any_pending:
                left = None if until is None else max(0.0, until - time.monotonic())
                rang = bell.wait(left)
                bell.clear()
                told = self.refresh()
                yield told
                if not rang:
                    return
            if self.outcomes is not told:
                yield self.outcomes  # whoever was told has read them again


def merged(before: Sequence[Outcome], fresh: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """The outcomes with fresh ones in place of the old. A conflict stays, and so does a settled outcome that the store
    no longer has."""
    found = {outcome.key: outcome for outcome in fresh}
    return tuple(old if _stays(old, found.get(old.key)) else _placed(found[old.key], old) for old in before)


def _stays(old: Outcome, fresh: Outcome | None) -> bool:
    return old.conflict or old.replayed or fresh is None or (old.settled and contradicted(old, fresh))


def changes(seen: dict[str, Outcome], outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """The outcomes that differ from those in `seen`, by call key, which is updated. Calls that came one by one all have
    the position 0."""
    for outcome in outcomes:
        if seen.get(outcome.key) != outcome:
            seen[outcome.key] = outcome
            yield outcome


def _placed(fresh: Outcome, old: Outcome) -> Outcome:
    """The fresh outcome with the id and position of the call in this turn; see ``submission``."""
    return replace(fresh, call_id=old.call_id, reply_id=old.reply_id, position=old.position, echo=old.echo)
