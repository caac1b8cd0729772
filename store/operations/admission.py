"""Looking up and admitting the calls of a turn.

Lookup answers what is settled or open, at one round trip and without any tool spec; only new calls are admitted, by
one script; see its header for the contract.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal, NamedTuple

from ..model.errors import StoreFull
from ..model.keys import Namespace
from ..model.outcomes import Outcome
from ..model.plain import plain_value
from ..model.record import ANSWER_FIELDS
from ..model.specs import ToolSpec
from ..model.states import State
from .new_calls import Identified as Identified
from .new_calls import InboxEntry as InboxEntry
from .new_calls import NewCall as NewCall
from .new_calls import Request as Request
from .new_calls import Turn as Turn
from .operation import Arg, Invocation, Query, invocation, text
from .outcome_codec import failure_json, read_conflict, read_outcome
from .pointers import job_fields
from .script_arguments import Counted, Each, arguments_of, repeated

NEAR_MEMORY_LIMIT = "Redis is near its memory limit; start workers, raise maxmemory, or `toolonce purge` settled calls"
RECORD_VERSION = "1"
_FINGERPRINT = ANSWER_FIELDS.index("fp")


def lookup(space: Namespace, calls: Sequence[Identified]) -> Query[tuple[Outcome | None, ...]]:
    """What the store knows of these calls, in their order; None of those that are not stored. Each record is read at
    one moment."""
    commands = [("HMGET", space.record(call.key), *ANSWER_FIELDS) for call in calls]

    def read(replies: Sequence[Any]) -> tuple[Outcome | None, ...]:
        return tuple([_stored(call, reply) for call, reply in zip(calls, replies, strict=True)])

    return Query(commands, read)


def _stored(call: Identified, reply: list[bytes | None]) -> Outcome | None:
    fingerprint = reply[_FINGERPRINT]
    if fingerprint is None:
        return None
    if fingerprint.decode() in call.fingerprints:
        return read_outcome(call.key, reply, replayed=True)
    return _conflict(call, reply)


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
    shared: Counted[Arg]
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
        return tuple(_admitted(turn, call, answer) for call, answer in zip(calls, reply[2:], strict=True))

    entry = request.entry or InboxEntry("", "", "")
    records = [_record(turn, call) for call in calls]
    shared = dict(set.intersection(*(set(record.items()) for record in records))) if records else {}
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
        shared=[*chain.from_iterable(shared.items())],
        calls=[_call_args(call, record, shared) for call, record in zip(calls, records, strict=True)],
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


def _admitted(turn: Turn, call: NewCall, answer: list[Any]) -> Outcome:
    verdict, stored, *chosen = answer
    if stored is None:
        outcome = _queued(turn, call)
    elif verdict == b"conflict":
        outcome = _conflict(call.identity, stored)
    else:
        outcome = read_outcome(call.identity.key, stored, replayed=verdict == b"found")
    return replace(outcome, reply_id=text(chosen[0]) or None) if chosen else outcome


def _queued(turn: Turn, call: NewCall) -> Outcome:
    """What the store would tell of a call that was queued just now, as it was sent."""
    return Outcome(
        call.identity.key,
        call.identity.idempotency_key,
        call.tool,
        call.call_id,
        call.position,
        State.QUEUED,
        kind=call.kind,
        echo=plain_value(call.echo),
        turn_id=turn.turn_id,
    )


def _call_args(call: NewCall, record: dict[str, Arg], shared: Mapping[str, Arg]) -> NewCallArgs:
    return NewCallArgs(
        call=call.identity.key,
        state=State.REFUSED if call.refusal else State.HELD if call.held else State.QUEUED,
        reason=call.refusal.code if call.refusal else call.held,
        approval_ms=call.spec.approval_ms if call.spec else 0,
        fingerprints=call.identity.fingerprints,
        unique_keys=call.unique_keys,
        predecessors=call.predecessors,
        after=call.after,
        record=[*chain.from_iterable((name, value) for name, value in record.items() if name not in shared)],
    )


def _record(turn: Turn, call: NewCall) -> dict[str, Arg]:
    spec = call.spec or ToolSpec(call.tool)
    record: dict[str, Arg] = {
        "v": RECORD_VERSION,
        "fp": call.identity.fingerprints[0],
        "tool": call.tool,
        "version": spec.version,
        "args": call.arguments,
        "scope": turn.scope,
        "tenant": turn.tenant,
        "turn": turn.turn_id,
        "position": call.position,
        "queue": spec.queue,
        "effect": spec.effect,
        "max_attempts": spec.max_attempts,
        "deadline_ms": spec.deadline_ms,
    }
    optional = {
        "kid": call.key_id or None,
        "kind": call.kind if call.kind != "function" else None,
        "begins": 1 if spec.begins else None,
        "secret": 1 if call.secret else None,
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
