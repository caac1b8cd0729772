"""The blocking client: submit turns and calls, find them again, cancel, approve and deny.

`submission` decides; this file runs its steps over a connection. `batch` is what a submission returns. `async_client`
is the same over asyncio.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar, Unpack

from redis.exceptions import RedisError

from ...store.connections.connection import Connection, without_password
from ...store.connections.project import chosen_namespace, chosen_url, find_project
from ...store.connections.waiting import Wakeups
from ...store.model.errors import StoreError, StoreMisuse
from ...store.model.keyring import Keyring
from ...store.model.outcomes import Outcome
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
from .batch import Batch
from .published_tools import definitions_of
from .queue_limits import QueueLimits, complete
from .single_call import CallOptions, single_call
from .submission import Intent, Step, SubmissionTerms, Submitting, asked, asked_of, usable_turn_id
from .submission_cache import SubmissionCache

T = TypeVar("T")
C = TypeVar("C")
_LOG = logging.getLogger("toolonce.stream")


class Client:
    """The client of a harness: it submits calls and waits for their outcomes.

    Threads can share a client; all waits use one connection.

    Args:
        url: of the Redis server; by default ``TOOLONCE_REDIS_URL``, else the server of this project, if it runs. Or an
            open `store.connection.Connection`, whose namespace and timeouts then apply, and which you close.
        namespace: by default ``TOOLONCE_NAMESPACE``, else ``toolonce``.
        scope: the tenant and conversation in which turn ids are unique. From your credentials, never from the model.
        tenant: the tenant whose limits count; by default the scope up to the first ``/``.
        keyring: by default the keys in ``TOOLONCE_KEYS``.
        limits: ``queue_limit=`` and ``tenant_queue_limit=``, most calls that may wait; see `queue_limits.QueueLimits`.

    Raises:
        StoreMisuse: no Redis server is given and that of this project does not run; URL or namespace is invalid; or
            scope or tenant is not valid UTF-8.
    """

    def __init__(
        self,
        url: str | Connection | None = None,
        *,
        scope: str,
        namespace: str | None = None,
        tenant: str = "",
        keyring: Keyring | None = None,
        **limits: Unpack[QueueLimits],
    ) -> None:
        self._lent = isinstance(url, Connection)
        self._connection = url if isinstance(url, Connection) else opened(Connection, url, namespace)
        keys = keyring if keyring is not None else Keyring.from_environment()
        self.terms = SubmissionTerms(
            self._connection.space, scope, tenant, keys, **complete(limits), place=self._connection.place
        )
        self._cache = SubmissionCache()
        self._wakeups = Wakeups(self._connection)

    def submit(
        self, turn: TurnResult, *, turn_id: str | None = None, intent: Intent = None, ordered: bool = False
    ) -> Batch:
        """Submit the calls of a completed turn, each to run once. Safe to repeat: known calls are replayed.

        Args:
            turn_id: your own step id; by default the provider's id of the turn.
            intent: your own key for a call that a regenerated turn may request again; or position -> key.
            ordered: run the calls of this turn strictly one after the other.

        Raises:
            TurnError: the turn did not complete, so none of its calls runs.
            TurnIdMissing, NoToolsPublished, KeyringMissing, StoreFull, StoreUnavailable: see `store.errors`.
            StoreMisuse: the turn id is not valid UTF-8.
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
        """Submit calls that the harness has as objects, in call order. The harness must know that their turn
        completed."""
        usable = usable_turn_id(turn_id, None)
        return self._drive(Submitting(self.terms, usable, tuple(map(asked, calls)), intent, ordered))

    def call(
        self,
        name: str,
        arguments: dict[str, Any] | str,
        *,
        call_id: str | None = None,
        turn_id: str | None = None,
        **options: Unpack[CallOptions],
    ) -> Outcome:
        """Run one call of a turn whose calls come one by one, and wait for its outcome. Safe to repeat: the same ids
        find the same call, also after a restart.

        The calls of a turn keep its rules however they come: a tool's ``after``, ``ordered=True``, limits.

        Args:
            call_id: the provider's id of the call; or give ``intent=``.
            turn_id: your own step id, or the id of the response; the same for each call of the turn.
            options: see `CallOptions`: ``intent``, ``occurrence``, ``ordered``, ``kind``, ``timeout``.

        Returns:
            The outcome; a pending one where the timeout came first. `batch` (turn_id) finds it later.

        Raises:
            CallIdMissing: neither `call_id` nor ``intent`` is given.
            TurnIdMissing: there is no turn id, and no intent key either.
            NoToolsPublished, KeyringMissing, StoreFull, StoreUnavailable: see `store.errors`.
        """
        submitting = single_call(self.terms, (name, arguments), call_id, turn_id, options)
        return self._drive(submitting).wait(options.get("timeout"))[0]

    def batch(self, turn_id: str) -> Batch:
        """The calls of a turn that any process has submitted before.

        A call that an intent key found in an earlier turn is listed in that turn only; to have it in this one as well,
        submit the turn again.

        Raises:
            StoreMisuse: nothing was admitted under this turn id in this scope.
        """
        outcomes = self.run(queries.turn(self.terms.space, self.terms.turn(turn_id).key))
        if not outcomes:
            raise StoreMisuse(
                f"no calls are stored for turn {turn_id!r} in scope {self.terms.scope!r}, {self._connection.place}"
            )
        return Batch(self, turn_id, outcomes)

    def tools(self, dialect: Dialect, *, only: Iterable[str] | None = None) -> ToolDefinitions:
        """What workers have published, as the tools of a dialect's request: ``tools=client.tools("anthropic")``.

        ``client.tools(dialect).request(body)`` also forbids parallel calls where a tool needs it.

        Args:
            only: names of the tools that this harness offers; by default all that the provider takes. The others are
                logged and stand in the result's `notes`.

        Raises:
            UnknownDialect: no such dialect.
            NoToolsPublished: no worker has published any.
            ToolNotOffered: the provider would refuse a request with a tool of `only`; the message says why.
            StoreMisuse: a tool of `only` is not published.
            CorruptRecord: a tool of `only` was published by a newer release.
        """
        spec_of(dialect)
        return definitions_of(self.run(published(self.terms.space)), dialect, only, self._connection.place)

    def cancel(self, key: str, *, actor: str = "harness", reason: str = "") -> Decision:
        """Cancel a call before it starts, or ask a running one to stop; see `operators.cancel`."""
        by = operators.Actor(actor, reason)
        return self.run(operators.cancel(self.terms.space, operators.Expected(key), by))

    def approve(self, outcome: Outcome, *, actor: str, reason: str = "") -> Decision:
        """Approve the call that was shown as this outcome, for exactly its idempotency key."""
        by = operators.Actor(actor, reason)
        shown = operators.Question.of(outcome)
        return self.run(operators.approve(self.terms.space, outcome.key, outcome.idempotency_key, by, shown=shown))

    def deny(self, outcome: Outcome, *, actor: str, reason: str = "") -> Decision:
        """Deny the call that was shown as this outcome."""
        by = operators.Actor(actor, reason)
        shown = operators.Question.of(outcome)
        return self.run(operators.deny(self.terms.space, outcome.key, outcome.idempotency_key, by, shown=shown))

    def note_aborted(self, lost: Aborted) -> None:
        """Store a note of an attempt that gave no turn, for cost control; ``toolonce aborted`` lists them."""
        self.run(note_aborted(self.terms.space, noted(self.terms, lost)))

    def run(self, operation: Operation[T]) -> T:
        """Run one store operation, for programs that need more than a harness does."""
        return self._connection.run(operation)

    def wakeups(self) -> Wakeups:
        """The subscriptions that wake this client's waits."""
        return self._wakeups

    def close(self) -> None:
        """End all waiting, and close the connection where this client opened it."""
        self._wakeups.close()
        if not self._lent:
            self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _drive(self, submitting: Submitting, turn: TurnResult | None = None) -> Batch:
        return Batch(self, submitting.turn_id, drive(self._connection, submitting.steps(self._cache)), turn)


def drive(connection: Connection, steps: Generator[Step, Any, tuple[Outcome, ...]]) -> tuple[Outcome, ...]:
    """Run the steps that a submission yields, one after the other."""
    found = advance(connection, steps)
    while isinstance(found, Heavy):
        found = advance(connection, steps, found.run())
    return found


def advance(
    connection: Connection, steps: Generator[Step, Any, tuple[Outcome, ...]], answer: Any = None
) -> tuple[Outcome, ...] | Heavy:
    """Run steps until the end, or until a validation that takes long, whose result is the next `answer`. The steps hear
    of errors of the store, too."""
    go_on = partial(steps.send, answer)
    while True:
        try:
            step = go_on()
        except StopIteration as stop:
            outcomes: tuple[Outcome, ...] = stop.value
            return outcomes
        if isinstance(step, Heavy):
            return step
        try:
            go_on = partial(steps.send, connection.run(step))
        except (StoreError, RedisError) as error:
            go_on = partial(steps.throw, error)


def noted(terms: SubmissionTerms, lost: Aborted) -> dict[str, Any]:
    """The fields of a note on an attempt that gave no turn."""
    return {"scope": terms.scope, **asdict(lost)}


def opened(kind: Callable[..., C], url: str | None, namespace: str | None) -> C:
    """A connection of this kind to the given or default store; see `store.project`.

    Raises:
        StoreMisuse: there is no store, or its URL or namespace is invalid; the message says what to do.
    """
    named = chosen_url(url)
    if namespace is not None and not isinstance(namespace, str):
        raise StoreMisuse(f"the namespace is a text, not {type(namespace).__name__}")
    if named is None:
        project = find_project()
        for warning in project.warnings:
            _LOG.warning("%s", warning)
        named = project.running_url()
    try:
        return kind(named, namespace=chosen_namespace(namespace))
    except (ValueError, TypeError) as error:
        about = "" if "namespace" in str(error) else f"the URL {without_password(named)!r} cannot be read: "
        raise StoreMisuse(f"{about}{error}; for example redis://localhost:6379/0" if about else str(error)) from error
