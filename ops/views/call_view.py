"""One call for people and programs: its identity, arguments, state, history, and the commands that fit its state.

Pure: turns a record into plain values. Secret fields are masked, also where this process has the keys.
"""

from __future__ import annotations

import json
from typing import Any

from ...store.model.controls import parked_by
from ...store.model.record import RecordFields
from ...store.model.sealing import mask
from ...store.model.states import State
from ...store.operations.queries import Record
from .render import age, moment

IDENTITY = ("tool", "version", "kind", "effect", "scope", "tenant", "turn", "call_id", "reply_id", "position", "queue")
TIMES = (
    "admitted_at", "changed_at", "queued_at", "not_before", "deadline_at", "approval_until",
    "decided_at", "begun_at", "settled_at",
)  # fmt: skip
EXTERNAL = {"tool": "name", "call_id": "id", "waits": "limited_by"}
NUMBERS = ("attempt", "attempt_limit", "fence")


def as_json(found: Record) -> dict[str, Any]:
    """The whole call as JSON. Times are ms of Redis time; `next` lists commands that fit the state."""
    fields = found.fields
    view: dict[str, Any] = {"call": found.key, "idempotency_key": found.idempotency_key, "state": found.state}
    view |= external(fields.typed((*IDENTITY, *NUMBERS, *TIMES)))
    view["position"] = fields.position
    view |= {name: text for name, text in fields.typed(("reason", "worker", "settled_by")).items() if text}
    view |= {name: text for name, text in fields.typed(("unique_by", "follows")).items() if text}
    view["arguments"] = masked(fields.args)
    if found.state is State.SUCCEEDED:
        view["result"] = masked(fields.result)
    view["error"] = _parsed(fields.error) or None
    view["marks"] = _parsed(fields.marks) or {}
    view["begun"] = fields.begun
    view["may_have_run"] = fields.may_have_run and found.state is not State.SUCCEEDED
    view["progress"] = progress_of(fields)
    if found.waits_for:
        view["waits_for"], view["waits_for_state"] = found.waits_for
    if found.fields.waits and not parked_by(found.fields.waits):
        view["limited_by"] = found.fields.waits
    if _deadline_stands_still(found):
        view["deadline_left_ms"] = fields.deadline_left
    if found.state is State.UNKNOWN:
        view["reconcile"] = {"asked": fields.asked, "heard": fields.heard}
    view["cancel_requested"] = fields.cancel_requested
    view["forgotten"] = bool(fields.forgotten)
    view["lease_left_ms"] = found.lease_left_ms
    view["history"] = list(found.history)
    view["evidence"] = [mask(item) for item in found.evidence]
    view["next"] = next_steps(found)
    return view


def external(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of a record under the names of `Outcome.to_json`."""
    view = {EXTERNAL.get(name, name): value for name, value in fields.items()}
    if parked_by(view.get("limited_by", "")):
        del view["limited_by"]  # a pause is no limit; the reason says so
    return view


def progress_of(fields: RecordFields) -> dict[str, Any] | None:
    """The last progress that a handler reported; None where there is none. The fraction is of the newest attempt."""
    if fields.progress_message is None:
        return None
    return {"fraction": fields.progress, "message": fields.progress_message}


def masked(stored: str | None) -> Any:
    """A stored JSON text as a value, with sealed fields as ``***``; None where retention has removed it."""
    return mask(_parsed(stored))


def next_steps(found: Record) -> list[str]:
    """Commands that fit the state of the call, the most useful one first."""
    key = found.key[:12]
    match found.state, found.fields.reason:
        case State.HELD, "duplicate" if found.fields.follows:
            first = found.fields.follows[:12]
            return [f"toolonce call {first} (this one gets its outcome)", f"toolonce cancel {key}"]
        case State.HELD, "approval" | "duplicate":
            return [f"toolonce approve {key}", f"toolonce deny {key} --reason R", f"toolonce cancel {key}"]
        case State.HELD, "no_worker":
            return [
                f"toolonce work --tools MODULE:REGISTRY (with {found.fields.tool})",
                f"toolonce cancel {key}",
            ]
        case State.HELD, "store_went_back":
            return _held_back(found)
        case State.HELD, "order" if found.waits_for and found.waits_for[1] == State.UNKNOWN:
            ahead = found.waits_for[0][:12]
            return [f"toolonce call {ahead} (it is in doubt; this one waits for it)", f"toolonce cancel {key}"]
        case State.QUEUED, "paused":
            return [f"toolonce resume {parked_by(found.fields.waits)}", f"toolonce cancel {key}"]
        case ((State.HELD | State.QUEUED | State.RUNNING), _):
            return [f"toolonce wait {key}", f"toolonce cancel {key}"]
        case State.UNKNOWN, _:
            return _in_doubt(found)
        case State.FAILED, _:
            return [f"toolonce retry {key} --reason R"]
        case _:
            return []


def _held_back(found: Record) -> list[str]:
    """Commands for a call that may have run before the store lost writes; a person has to find out."""
    return [
        f"look for {found.idempotency_key} in the system that {found.fields.tool} changes",
        f"toolonce resolve {found.key} --succeeded JSON --reason R",
        f"toolonce resolve {found.key} --failed MESSAGE --reason R",
        f"toolonce recover --accept-loss {found.key} --reason R",
        f"toolonce cancel {found.key}",
    ]


def _in_doubt(found: Record) -> list[str]:
    """Commands for an unknown call: a person has to find out whether it happened."""
    return [
        f"look for {found.idempotency_key} in the system that {found.fields.tool} changes",
        f"toolonce resolve {found.key} --succeeded JSON --reason R",
        f"toolonce resolve {found.key} --failed MESSAGE --reason R",
        f"toolonce retry {found.key} --reason R",
    ]


def time_line(found: Record) -> list[tuple[str, str, str, str]]:
    """The history as rows: time, operation, states, actor and reason."""
    return [(moment(event["at"]), event.get("op", ""), move_of(event), actor_of(event)) for event in found.history]


def standing(found: Record) -> str:
    """The state of a call in one line."""
    reason = found.fields.reason
    words = [f"{found.state} ({reason})" if reason else str(found.state)]
    if found.history:
        words.append(f"for {age(found.read_at - found.history[-1]['at'])}")
    if found.lease_left_ms is not None:
        words.append(f"lease ends in {found.lease_left_ms} ms" if found.lease_left_ms > 0 else "lease has run out")
    if found.fields.may_have_run and found.state is not State.SUCCEEDED:
        words.append("may have run before the store lost writes")
    if found.fields.cancel_requested:
        words.append("stop requested")
    if target := parked_by(found.fields.waits):
        words.append(f"parked by the pause of {target}")
    elif found.fields.waits:
        words.append(f"limited by {found.fields.waits}")
    if _deadline_stands_still(found):
        words.append(f"its deadline stands still with {age(found.fields.deadline_left)} left")
    if found.waits_for:
        words.append(f"behind {found.waits_for[0][:12]} ({found.waits_for[1]})")
    return ", ".join(words)


def _deadline_stands_still(found: Record) -> bool:
    return not found.state.is_settled and found.fields.deadline_left > 0 and found.fields.deadline_at is None


def move_of(event: dict[str, Any]) -> str:
    """The states before and after an event."""
    before, after = event.get("from"), event.get("to")
    if not after:
        return ""
    return f"{before} -> {after}" if before else f"-> {after}"


def actor_of(event: dict[str, Any]) -> str:
    """The actor, reason and fence of an event; for an exception also its type and place."""
    parts = [str(event[name]) for name in ("actor", "reason") if event.get(name)]
    parts += [_raised(event["exception"])] if event.get("exception") else []
    if event.get("count"):
        parts.append(f"{event['count']} times since {moment(event['first_at'])}")
    parts += [f"{name} {event[name]}" for name in ("fence", "attempt") if event.get(name) not in (None, "", "0")]
    return ", ".join(parts)


def _raised(exception: dict[str, Any]) -> str:
    words = f"{exception.get('type')}: {exception.get('message', '')}".removesuffix(": ")
    return f"{words} ({exception['file']}:{exception['line']})" if exception.get("file") else words


def _parsed(stored: str | None) -> Any:
    if not stored:
        return None
    try:
        return json.loads(stored)
    except ValueError:
        return stored
