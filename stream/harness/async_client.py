"""The client over asyncio. `client` documents its methods, and `submission` decides.

It must be created in a running event loop. All concurrent waits share one connection; operations share a few more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Generator, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar, Unpack

from redis.exceptions import RedisError

from ...store.connections.async_connection import AsyncConnection
from ...store.connections.async_waiting import AsyncWakeups
from ...store.connections.replication import needed_replicas
from ...store.connections.waiting import refuse_to_wait
from ...store.model.errors import StoreError, StoreMisuse
from ...store.model.keyring import Keyring
from ...store.model.outcomes import Outcome
from ...store.model.times import wait_limit
from ...store.operations import operators, queries
from ...store.operations.aborted_turns import note_aborted
from ...store.operations.operation import Operation
from ...store.operations.operators import Decision
from ...store.operations.tools import published
from ...store.schema.validation import Heavy
from ..dialects.table import spec_of
from ..dialects.tools import ToolDefinitions
from ..provider.retry import Aborted
from ..turns.turn import Dialect, RejectedCall, ToolCall, TurnResult
from .batch import BatchView, changes
from .client import noted, opened
from .published_tools import definitions_of
from .queue_limits import QueueLimits, complete
from .single_call import CallOptions, single_call
from .submission import Intent, Step, SubmissionTerms, Submitting, asked, asked_of, usable_turn_id
from .submission_cache import SubmissionCache

T = TypeVar("T")
CONNECTIONS = 16
"""Most connections of one client for operations; further operations wait, for a few ms each."""


class AsyncClient:
    """The client of a harness under asyncio; see `Client` for arguments, results and errors. The open connection is an
    `AsyncConnection` here."""

    def __init__(
        self,
        url: str | AsyncConnection | None = None,
        *,
        scope: str,
        namespace: str | None = None,
        tenant: str = "",
        keyring: Keyring | None = None,
        **limits: Unpack[QueueLimits],
    ) -> None:
        self._lent = isinstance(url, AsyncConnection)
        self._connection = (
            url
            if isinstance(url, AsyncConnection)
            else opened(partial(AsyncConnection, connections=CONNECTIONS), url, namespace)
        )
        keys = keyring if keyring is not None else Keyring.from_environment()
        self.terms = SubmissionTerms(
            self._connection.space, scope, tenant, keys, **complete(limits), place=self._connection.place
        )
        self._cache = SubmissionCache()
        self._wakeups = AsyncWakeups(self._connection)

    async def submit(
        self, turn: TurnResult, *, turn_id: str | None = None, intent: Intent = None, ordered: bool = False
    ) -> AsyncBatch:
        """Submit the calls of a completed turn, each to run once; as `Client.submit`."""
        calls = asked_of(turn)
        usable = usable_turn_id(turn_id, turn.turn_id)
        return await self._drive(Submitting(self.terms, usable, tuple(calls), intent, ordered), turn)

    async def submit_calls(
        self,
        calls: Iterable[ToolCall | RejectedCall],
        *,
        turn_id: str,
        intent: Intent = None,
        ordered: bool = False,
    ) -> AsyncBatch:
        """Submit calls that the harness has as objects, in call order; as `Client.submit_calls`."""
        usable = usable_turn_id(turn_id, None)
        return await self._drive(Submitting(self.terms, usable, tuple(map(asked, calls)), intent, ordered))

    async def call(
        self,
        name: str,
        arguments: dict[str, Any] | str,
        *,
        call_id: str | None = None,
        turn_id: str | None = None,
        **options: Unpack[CallOptions],
    ) -> Outcome:
        """Run one call of a turn whose calls come one by one, and wait for its outcome; as `Client.call`."""
        submitting = single_call(self.terms, (name, arguments), call_id, turn_id, options)
        return (await (await self._drive(submitting)).wait(options.get("timeout")))[0]

    async def batch(self, turn_id: str) -> AsyncBatch:
        """The calls of a turn that any process has submitted before; as `Client.batch`."""
        outcomes = await self.run(queries.turn(self.terms.space, self.terms.turn(turn_id).key))
        if not outcomes:
            raise StoreMisuse(
                f"no calls are stored for turn {turn_id!r} in scope {self.terms.scope!r}, {self._connection.place}"
            )
        return AsyncBatch(self, turn_id, outcomes)

    async def tools(self, dialect: Dialect, *, only: Iterable[str] | None = None) -> ToolDefinitions:
        """What workers have published, as the tools of a dialect's request; as `Client.tools`."""
        spec_of(dialect)
        return definitions_of(await self.run(published(self.terms.space)), dialect, only, self._connection.place)

    async def cancel(self, key: str, *, actor: str = "harness", reason: str = "") -> Decision:
        """Cancel a call before it starts, or ask a running one to stop; as `Client.cancel`."""
        return await self.run(
            operators.cancel(self.terms.space, operators.Expected(key), operators.Actor(actor, reason))
        )

    async def approve(self, outcome: Outcome, *, actor: str, reason: str = "") -> Decision:
        """Approve the call that was shown as this outcome; as `Client.approve`."""
        by = operators.Actor(actor, reason)
        shown = operators.Question.of(outcome)
        return await self.run(
            operators.approve(self.terms.space, outcome.key, outcome.idempotency_key, by, shown=shown)
        )

    async def deny(self, outcome: Outcome, *, actor: str, reason: str = "") -> Decision:
        """Deny the call that was shown as this outcome; as `Client.deny`."""
        by = operators.Actor(actor, reason)
        shown = operators.Question.of(outcome)
        return await self.run(operators.deny(self.terms.space, outcome.key, outcome.idempotency_key, by, shown=shown))

    async def note_aborted(self, lost: Aborted) -> None:
        """Store a note of an attempt that gave no turn; as `Client.note_aborted`."""
        await self.run(note_aborted(self.terms.space, noted(self.terms, lost)))

    async def run(self, operation: Operation[T]) -> T:
        """Run one store operation; as `Client.run`."""
        return await self._connection.run(operation)

    def wakeups(self) -> AsyncWakeups:
        """The subscriptions that wake this client's waits."""
        return self._wakeups

    async def close(self) -> None:
        """End all waiting, and close the connection where this client opened it."""
        await self._wakeups.close()
        if not self._lent:
            await self._connection.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _drive(self, submitting: Submitting, turn: TurnResult | None = None) -> AsyncBatch:
        steps: Generator[Step, Any, tuple[Outcome, ...]] = submitting.steps(self._cache)
        go_on = partial(steps.send, None)
        while True:
            try:
                step = go_on()
            except StopIteration as stop:
                return AsyncBatch(self, submitting.turn_id, stop.value, turn)
            try:
                answer = await (asyncio.wrap_future(step.start()) if isinstance(step, Heavy) else self.run(step))
            except (StoreError, RedisError) as error:
                go_on = partial(steps.throw, error)
            else:
                go_on = partial(steps.send, answer)


class AsyncBatch(BatchView):
    """The calls of one turn and their outcomes so far; see `Batch`."""

    def __init__(
        self, client: AsyncClient, turn_id: str, outcomes: Sequence[Outcome], turn: TurnResult | None = None
    ) -> None:
        super().__init__(client.terms, turn_id, outcomes, turn)
        self._client = client

    async def wait(self, timeout: float | None = None, *, durable: bool = False) -> tuple[Outcome, ...]:
        """Wait until every call is settled or unknown, or until `timeout` seconds have passed; as `Batch.wait`."""
        async for _ in self._changes(timeout):
            pass
        if durable:
            needed = await self._client.run(needed_replicas(self._terms.space))
            self._note_replicas(needed, await self._client.run(self._barrier(needed)))
        return self.outcomes

    async def as_completed(self, timeout: float | None = None) -> AsyncIterator[Outcome]:
        """Each outcome once, as its call comes to rest; as `Batch.as_completed`."""
        seen: dict[str, Outcome] = {}
        async for outcomes in self._changes(timeout):
            for outcome in changes(seen, (outcome for outcome in outcomes if not outcome.pending)):
                yield outcome

    async def events(
        self, timeout: float | None = None, *, after: Iterable[Outcome] = (), until_held: bool = False
    ) -> AsyncIterator[Outcome]:
        """Each outcome at once, and again at every change; as `Batch.events`."""
        seen = {outcome.key: outcome for outcome in after}
        async for outcomes in self._changes(timeout):
            for outcome in changes(seen, outcomes):
                yield outcome
            if until_held and self.is_held:
                for outcome in changes(seen, await self.refresh()):
                    yield outcome
                if self.is_held:
                    return

    async def refresh(self) -> tuple[Outcome, ...]:
        """Read the outcomes now; as `Batch.refresh`."""
        fresh: list[Outcome] = []
        for key in self._turn_keys:
            read = await self._client.run(queries.turn(self._terms.space, key))
            fresh.extend(read)
        if news := self._contradicted(fresh):
            await self._client.run(news)
        return self._take(fresh)

    async def _changes(self, timeout: float | None) -> AsyncIterator[tuple[Outcome, ...]]:
        wait_limit("timeout", timeout)
        told = self.outcomes
        yield told
        if not self.any_pending:
            if self.outcomes is not told:
                yield self.outcomes
            return
        refuse_to_wait()
        until = None if timeout is None else time.monotonic() + timeout
        async with self._client.wakeups().watch(*self._channels) as bell:
            while self.any_pending:
                left = None if until is None else max(0.0, until - time.monotonic())
                rang = await _rings(bell, left)
                bell.clear()
                told = await self.refresh()
                yield told
                if not rang:
                    return
            if self.outcomes is not told:
                yield self.outcomes


async def _rings(bell: asyncio.Event, timeout: float | None) -> bool:
    try:
        await asyncio.wait_for(bell.wait(), timeout)
    except TimeoutError:
        return False
    return True
