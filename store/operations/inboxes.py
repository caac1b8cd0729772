"""The inbox streams as the store sees them: handing out, putting aside, forgetting. Admission acknowledges the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ..model.errors import StoreFull
from ..model.keys import Namespace
from ..model.plain import whole_text
from .admission import NEAR_MEMORY_LIMIT, InboxEntry
from .operation import Invocation, invocation
from .script_arguments import Each, arguments_of

FIELDS_KEPT = 50
"""Of an entry that is put aside, to look at: a readable one has at most ten."""
BYTES_KEPT = 4_096
"""Of an entry that is put aside; 10,000 such entries are kept, and must not fill the store."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is handed out.

    Attributes:
        entry_bytes: of one entry, names and values together; a larger one is handed out without its fields.
        step_bytes: in one step, over all tenants; the next step goes on with those who got nothing.
        entries: of one tenant in one step.
        in_hand: entries of one tenant that consumers may hold unfinished; the rest stay in the inbox.
        mine_ms, others_ms: after which an entry that this consumer, or another one, holds is handed out again.
    """

    entry_bytes: int
    step_bytes: int
    entries: int
    in_hand: int
    mine_ms: int
    others_ms: int


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads: the consumer group and this consumer's name in it."""

    group: str
    consumer: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """One entry as it was handed out.

    Attributes:
        tries: how often it was handed out, this time included, to consumers that did not say that it must wait.
        size: bytes of all names and values.
        fields: None where the entry is larger than `Bounds.entry_bytes`.
    """

    tenant: str
    entry: str
    tries: int
    size: int
    fields: dict[bytes, bytes] | None


@dataclass(frozen=True, slots=True)
class InboxStep:
    """What one step found.

    Attributes:
        entries: in the order of the tenants that were asked for.
        empty: tenants whose inbox is empty -> id of the last entry it held.
        missing: tenants without an inbox.
        broken: tenants whose inbox cannot be read -> what the server says.
    """

    entries: tuple[Delivered, ...]
    empty: dict[str, str]
    missing: tuple[str, ...]
    broken: dict[str, str]


@arguments_of("deliver")
class DeliverArgs(NamedTuple):
    group: str
    consumer: str
    mode: Literal["new", "again"]
    entry_bytes: int
    step_bytes: int
    entries: int
    in_hand: int
    mine_ms: int
    others_ms: int
    tenants: Each[str]


@arguments_of("quarantine")
class QuarantineArgs(NamedTuple):
    stream: str
    group: str
    entry: str
    reason: str
    answers: str
    most_fields: int
    most_bytes: int


@arguments_of("forget_inbox")
class ForgetInboxArgs(NamedTuple):
    kept_ms: int
    tenants: Each[str]


def deliver(
    space: Namespace, reader: Reader, tenants: Sequence[str], bounds: Bounds, *, again: bool = False
) -> Invocation[InboxStep]:
    """Hand out entries of these tenants: new ones, or (`again`) those that a consumer holds and did not finish.

    Raises (when run):
        StoreFull: Redis is near its memory limit, so that nothing could be admitted; nothing was handed out.
    """

    def read(reply: list[Any]) -> InboxStep:
        if reply[0] == b"full":
            raise StoreFull(NEAR_MEMORY_LIMIT)
        states = dict(zip(tenants, (state.decode() for state in reply[0]), strict=True))
        return InboxStep(
            entries=tuple(_delivered(tenants, entry) for entry in reply[1:]),
            empty={tenant: state for tenant, state in states.items() if state[:1].isdigit()},
            missing=tuple(tenant for tenant, state in states.items() if state == "none"),
            broken={tenant: state for tenant, state in states.items() if state.startswith("ERR")},
        )

    args = DeliverArgs(
        group=reader.group,
        consumer=reader.consumer,
        mode="again" if again else "new",
        entry_bytes=bounds.entry_bytes,
        step_bytes=bounds.step_bytes,
        entries=bounds.entries,
        in_hand=bounds.in_hand,
        mine_ms=bounds.mine_ms,
        others_ms=bounds.others_ms,
        tenants=tenants,
    )
    return invocation(space.root, args, read)


def _delivered(tenants: Sequence[str], entry: list[Any]) -> Delivered:
    place, entry_id, tries, size, flat = entry
    fields = None if flat is None else dict(zip(flat[::2], flat[1::2], strict=True))
    return Delivered(tenants[place], entry_id.decode(), tries, size, fields)


def quarantine(space: Namespace, entry: InboxEntry, reason: str) -> Invocation[bool]:
    """Put an entry aside with the reason and acknowledge it, in one step; False where that was done before."""
    args = QuarantineArgs(
        stream=entry.stream,
        group=entry.group,
        entry=entry.entry,
        reason=whole_text(reason),
        answers=entry.answers,
        most_fields=FIELDS_KEPT,
        most_bytes=BYTES_KEPT,
    )
    return invocation(space.root, args, lambda reply: reply == 1)


def forget_inbox(space: Namespace, tenants: Sequence[str], *, kept_ms: int) -> Invocation[int]:
    """Remove tenants from the list that have no inbox, or an empty one that got no entry for `kept_ms`; their
    number."""
    return invocation(space.root, ForgetInboxArgs(kept_ms=kept_ms, tenants=tenants), int)
