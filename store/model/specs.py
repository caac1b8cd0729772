"""What a worker publishes about a tool, so that harnesses need none of its code: schema, effect, limits, queue.

Pure values and their JSON form.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter


class Effect(StrEnum):
    """What a tool does to the world; decides what may follow when nobody knows how a run ended."""

    READ = "read"
    """Safe to repeat."""
    IDEMPOTENT = "idempotent"
    """Safe to repeat with the same idempotency key."""
    MUTATING = "mutating"
    """Never repeated on our own. The default."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One version of a tool.

    Attributes:
        schema: JSON Schema 2020-12 of the arguments object.
        timeout_ms: run limit of one attempt; 0 for none. By default below the grace of a worker that stops.
        max_attempts: claims before a call that may be repeated is given up. An attempt that ended in NotStarted does
            not count: its bound is the deadline.
        deadline_ms: queue deadline, counted from the first time the call is queued.
        concurrency: most calls at once over all workers; None for no limit.
        rate: how many of its calls may start in a time over all workers, ``100/min``; None for no rate.
        order_by: argument names (``path`` or ``path:casefold``) whose equal values make calls run one by one.
        after: tools whose calls in the same turn must succeed first: those that stand before it in its submission, and
            those that are stored already. One that is submitted later is not waited for.
        approval: ``never``, ``always`` or ``hook`` (the worker's authorize hook decides).
        secret: names of argument fields that are kept encrypted and shown masked. secret_result: of result fields.
        opens_in: secret result field -> argument fields (``tool.field``) in which its sealed value is opened again.
        begins: the handler says ``call.begin()`` before its effect.
        reconciles: the tool has a ``reconcile``.
        hold_duplicates: a call that equals an open one of its scope, under another key, waits for a person's word.
        unique_by: arguments that identify the effect: of calls in which they are equal, in one scope or tenant, one is
            the first; an equal one gets its outcome, others are refused.
        unique_for_ms: for how long after the first has ended; 0: as long as its tombstone is kept.
    """

    name: str
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "object"})
    description: str = ""
    version: str = "1"
    effect: Effect = Effect.MUTATING
    timeout_ms: int = 20_000
    max_attempts: int = 5
    deadline_ms: int = 600_000
    queue: str = "default"
    concurrency: int | None = None
    rate: str | None = None
    order_by: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    approval: str = "never"
    approval_ms: int = 86_400_000
    secret: tuple[str, ...] = ()
    secret_result: tuple[str, ...] = ()
    opens_in: dict[str, tuple[str, ...]] = field(default_factory=dict)
    begins: bool = False
    reconciles: bool = False
    rerun_absent: bool = False
    hold_duplicates: bool = False
    unique_by: tuple[str, ...] = ()
    unique_in: Literal["scope", "tenant"] = "scope"
    unique_for_ms: int = 0

    @property
    def parallel_safe(self) -> bool:
        """Two of its calls at once can do no harm by what it declares: it reads, repeats of it add nothing, or its
        calls run one at a time."""
        return self.effect is not Effect.MUTATING or self.concurrency == 1 or bool(self.order_by)

    def to_json(self) -> str:
        """The published form: JSON, the same text for the same tool. The schema's members keep the order that the
        author gave them, in which models read and write them."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> ToolSpec:
        """Read a published spec; members that a newer release added are passed over."""
        return _reader().validate_json(text)


@cache
def _reader() -> TypeAdapter[ToolSpec]:
    return TypeAdapter(ToolSpec)


@dataclass(frozen=True, slots=True)
class Published:
    """The newest spec of each tool, and the number that changes when any of them does.

    Attributes:
        unreadable: tools whose spec was published by a release that this one does not understand; the others stand.
    """

    version: int
    tools: dict[str, ToolSpec]
    unreadable: frozenset[str] = frozenset()
