"""Looking up and admitting the calls of a turn.

Lookup answers what is settled or open, at one round trip and without any tool spec; only new calls are admitted, by
one script; see its header for the contract.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal, NamedTuple

from ..model.errors import StoreFull
from ..model.keys import Namespace
from ..model.outcomes import Failure, Outcome
from ..model.plain import plain_value
from ..model.record import ANSWER_FIELDS
from ..model.specs import ToolSpec
from ..model.states import State
from .fence_watermark import FenceWatermark
from .operation import Arg, Invocation, Query, invocation, text
from .outcome_codec import failure_json, read_conflict, read_outcome
from .pointers import job_fields
from .script_arguments import Counted, Each, arguments_of, repeated

NEAR_MEMORY_LIMIT = "Redis is near its memory limit; start workers, raise maxmemory, or `toolonce purge` settled calls"
RECORD_VERSION = "1"


@dataclass(frozen=True, slots=True)
class Identified:
    """A call with its identity: what lookup needs.

    Attributes:
        fingerprints: one per configured key, the current key's first; unkeyed where there is no keyring.
        by_intent: named by an intent key, and not by its turn and place.
    """

    key: str
    fingerprints: tuple[str, ...]
    by_intent: bool = False

    @property
    def idempotency_key(self) -> str:
        return f"{self.key}-{self.fingerprints[0]}"


@dataclass(frozen=True, slots=True)
class NewCall:
    """A call that is to be stored: what was asked for, and what the tool's spec makes of it.

    Attributes:
        arguments: JSON text; for custom tools the JSON text of the input text; encrypted where `secret`.
        refusal: set where admission refuses the call; it is stored with this answer and never run.
        held: reason to hold it (``approval``, ``no_worker``), or "".
        lanes: order keys; calls that share one run one by one, in order of admission.
        predecessors: call keys that must succeed first.
        after: tools whose calls of this turn must succeed first, where they are stored by then.
        unique_keys: under every configured key, the newest one's first; () where its tool has none.
    """

    identity: Identified
    tool: str
    arguments: str
    position: int
    call_id: str | None
    spec: ToolSpec | None = None
    kind: str = "function"
    refusal: Failure | None = None
    held: str = ""
    lanes: tuple[str, ...] = ()
    predecessors: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    unique_keys: tuple[str, ...] = ()
    echo: dict[str, Any] = field(default_factory=dict)
    key_id: str = ""
    secret: bool = False
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """The unit of admission: whose it is, and under what its calls are listed."""

    scope: str
    turn_id: str
    key: str
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """The inbox entry that admission acknowledges in the same step, and the stream where its answers go."""

    stream: str
    group: str
    entry: str
    answers: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One wish to admit, whole: sent again under its id it is answered, not done again.

    Attributes:
        queue_limit: most calls that a queue may hold; 0 for no limit.
        tenant_queue_limit: most queued calls of the turn's tenant; 0 for no limit.
        entry: the inbox entry that asks, if one does.
        specs_version: of the published specs by which the new calls were validated; None where it does not matter.
        watermark: the highest fence that the harness has seen: a store that knows less is flagged before anything is
            stored, and what the store knows is noted here.
    """

    id: str
    queue_limit: int = 0
    tenant_queue_limit: int = 0
    entry: InboxEntry | None = None
    specs_version: int | None = None
    watermark: FenceWatermark = field(default_factory=FenceWatermark)


def lookup(space: Namespace, calls: Sequence[Identified]) -> Query[tuple[Outcome | None, ...]]:
    """What the store knows of these calls, in their order; None of those that are not stored. Each record is read at
    one moment."""
    commands = [("HMGET", space.record(call.key), "fp", *ANSWER_FIELDS) for call in calls]

    def read(replies: Sequence[Any]) -> tuple[Outcome | None, ...]:
        return tuple([_stored(call, reply) for call, reply in zip(calls, replies, strict=True)])

    return Query(commands, read)


def _stored(call: Identified, reply: list[bytes | None]) -> Outcome | None:
    fingerprint, *answer = reply
    if fingerprint is None:
        return None
    if fingerprint.decode() in call.fingerprints:
        return read_outcome(call.key, answer, replayed=True)
    return _conflict(call, answer)


def _conflict(call: Identified, answer: list[bytes | None]) -> Outcome:
    return read_conflict(call.key, answer, idempotency_key=call.idempotency_key, by_intent=call.by_intent)


@repeated
class NewCallArgs(NamedTuple):
    call: str
    state: str
    reason: str
    approval_ms: int
    fingerprints: Counted[str]
    unique_keys: Counted[str]
    predecessors: Counted[str]
    after: Counted[str]
    record: Counted[Arg]


@arguments_of("admit")
class AdmitArgs(NamedTuple):
    seen_fence: int
    request_id: str
    turn_key: str
    queue_limit: int
    specs_version: int | Literal[""]
    inbox: str
    group: str
    entry: str
    answers: str
    tenant_queue_limit: int
    job: Counted[str | bytes]
    calls: Each[NewCallArgs]


def admit(
    space: Namespace, turn: Turn, calls: Sequence[NewCall], *, request: Request
) -> Invocation[tuple[Outcome, ...] | None]:
    """Store the new calls of one turn, whole, in one atomic step; those that are stored already stay untouched.

    None where the published specs are no longer those that the request names: nothing was stored; they are to be
    validated again. When the reply is lost the step may or may not have happened; sent again under the same request id
    it answers the same. Call keys and predecessors are the caller's to compute (`identity`).

    Raises (when run):
        StoreFull: a queue is at its limit, or Redis is near its memory limit; nothing was stored.
    """

    def read(reply: list[Any]) -> tuple[Outcome, ...] | None:
        if reply[0] == b"specs":
            return None
        if reply[0] == b"full":
            raise StoreFull(_why_full(reply))
        request.watermark.note(reply[1])
        return tuple(_admitted(call.identity, answer) for call, answer in zip(calls, reply[2:], strict=True))

    entry = request.entry or InboxEntry("", "", "")
    args = AdmitArgs(
        seen_fence=request.watermark.seen,
        request_id=request.id,
        turn_key=turn.key,
        queue_limit=request.queue_limit,
        specs_version="" if request.specs_version is None else request.specs_version,
        inbox=entry.stream,
        group=entry.group,
        entry=entry.entry,
        answers=entry.answers,
        tenant_queue_limit=request.tenant_queue_limit,
        job=job_fields(),
        calls=[_call_args(turn, call) for call in calls],
    )
    return invocation(space.root, args, read)


def _why_full(reply: list[Any]) -> str:
    if reply[1] == b"memory":
        return NEAR_MEMORY_LIMIT
    name, most, is_by_people = reply[2].decode(), reply[3], reply[4]
    if reply[1] == b"tenant":
        what, limit = f"tenant {name!r} has {most} queued calls", "tenant_queue_limit"
    else:
        what, limit = f"queue {name!r} holds {most} calls", "queue_limit"
    if is_by_people:
        target = shlex.quote(f"{reply[1].decode()}:{name}")
        return f"{what}, its limit by people: start workers, or toolonce limit {target} NUMBER --queued"
    option, variable = limit.replace("_", "-"), limit.upper()
    return f"{what}, its limit: start workers, or raise {limit}= (--{option}, TOOLONCE_{variable})"


def _admitted(call: Identified, answer: list[Any]) -> Outcome:
    verdict, stored, *chosen = answer
    if verdict == b"conflict":
        outcome = _conflict(call, stored)
    else:
        outcome = read_outcome(call.key, stored, replayed=verdict == b"found")
    return replace(outcome, reply_id=text(chosen[0]) or None) if chosen else outcome


def _call_args(turn: Turn, call: NewCall) -> NewCallArgs:
    return NewCallArgs(
        call=call.identity.key,
        state=State.REFUSED if call.refusal else State.HELD if call.held else State.QUEUED,
        reason=call.refusal.code if call.refusal else call.held,
        approval_ms=call.spec.approval_ms if call.spec else 0,
        fingerprints=call.identity.fingerprints,
        unique_keys=call.unique_keys,
        predecessors=call.predecessors,
        after=call.after,
        record=[*chain.from_iterable(_record(turn, call).items())],
    )


def _record(turn: Turn, call: NewCall) -> dict[str, Arg]:
    spec = call.spec or ToolSpec(call.tool)
    record: dict[str, Arg] = {
        "v": RECORD_VERSION,
        "fp": call.identity.fingerprints[0],
        "kid": call.key_id,
        "tool": call.tool,
        "version": spec.version,
        "kind": call.kind,
        "args": call.arguments,
        "scope": turn.scope,
        "tenant": turn.tenant,
        "turn": turn.turn_id,
        "position": call.position,
        "queue": spec.queue,
        "effect": spec.effect,
        "begins": int(spec.begins),
        "attempt": 0,
        "attempt_limit": spec.max_attempts,
        "max_attempts": spec.max_attempts,
        "deadline_ms": spec.deadline_ms,
        "secret": int(call.secret),
    }
    optional = {
        "call_id": call.call_id,
        "lanes": "\n".join(call.lanes) or None,
        "echo": json.dumps(plain_value(call.echo)) if call.echo else None,
        "error": failure_json(call.refusal) or None,
        "trace": call.trace or None,
        "by_intent": 1 if call.identity.by_intent else None,
        "hold_duplicates": 1 if spec.hold_duplicates else None,
        "approval_ms": spec.approval_ms if spec.hold_duplicates else None,
        "unique_by": ", ".join(spec.unique_by) or None,
        "unique_for": spec.unique_for_ms or None,
    }
    return record | {name: value for name, value in optional.items() if value is not None}
