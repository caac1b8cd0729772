"""Reads what the store says about a call into an Outcome. The order of fields is that of `ToldAnswer`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ..model import identity
from ..model.errors import CorruptRecord
from ..model.outcomes import Failure, Outcome
from ..model.plain import plain_value, whole_text
from ..model.record import ToldAnswer
from ..model.states import NotStored, State

_STATES = {state.value: (state, state.is_settled) for state in State}
_FOLLOWED = (State.SUCCEEDED, State.FAILED)
"""How a call comes to rest that follows another one by a unique key."""
_ANOTHER_SHAPE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What is raised by JSON that is not of the form it should have."""
_JSON = json.JSONDecoder()
_scan: Callable[[str, int], tuple[Any, int]] = _JSON.scan_once  # type: ignore[attr-defined]  # unknown to typeshed


def read_outcome(key: str, reply: list[bytes | None], *, replayed: bool = False) -> Outcome:
    """One call's answer as a value.

    Raises:
        CorruptRecord: what is stored is no answer.
    """
    try:
        return _read(key, _answer(reply), replayed=replayed)
    except _ANOTHER_SHAPE as error:
        raise CorruptRecord(f"call {key}: its record cannot be read: {error}") from error


def read_conflict(key: str, reply: list[bytes | None], *, idempotency_key: str, by_intent: bool) -> Outcome:
    """The answer to a call that the store knows with another tool or other arguments.

    Args:
        reply: the record of the first call.
        idempotency_key: of the call that is refused. by_intent: whether both were named by an intent key.

    Raises:
        CorruptRecord: what is stored is no answer.
    """
    try:
        got = _answer(reply)
        first = _first_call(got)
    except _ANOTHER_SHAPE as error:
        raise CorruptRecord(f"call {key}: its record cannot be read: {error}") from error
    named = "this intent key was used before" if by_intent else "this call id was used before in this turn"
    words = f"{named} with another tool or other arguments; not run. The first call is {first['state']}"
    return Outcome(
        key,
        idempotency_key,
        got.tool or "",
        got.call_id,
        int(got.position or 0),
        NotStored.CONFLICT,
        failure=Failure("conflict", words, {"first": first, "named_by": "intent" if by_intent else "turn"}),
        conflict=True,
        kind=got.kind or "function",
        turn_id=got.turn or "",
        reply_id=got.reply_id,
    )


def _first_call(got: ToldAnswer) -> dict[str, Any]:
    """What became of a call whose identity was used again; see `Failure`."""
    state = _STATES[got.state or ""][0]
    first: dict[str, Any] = {"tool": got.tool or "", "state": state.value, "attempt": int(got.attempt or 0)}
    if got.reason and state is State.HELD:
        first["reason"] = got.reason
    if state is not State.SUCCEEDED and (error := _json(got.error)):
        first["error"] = error
    return first | {"may_have_run": True} if got.may_have_run else first


def _answer(reply: list[bytes | None]) -> ToldAnswer:
    return ToldAnswer._make([None if field is None else field.decode() for field in reply])


def _read(key: str, got: ToldAnswer, *, replayed: bool) -> Outcome:
    state, is_settled = _STATES[got.state or ""]
    # By position: by name takes a third longer, and this stands in the way of every replay.
    return Outcome(
        key,
        identity.idempotency_key(key, got.fp or ""),
        got.tool or "",
        got.call_id,
        int(got.position or 0),
        state,
        _json(got.result) if state is State.SUCCEEDED else None,
        None if state is State.SUCCEEDED else read_failure(got.error),
        (replayed and is_settled) or (state in _FOLLOWED and got.follows is not None),
        False,
        int(got.attempt or 0),
        int(got.fence or 0),
        got.kind or "function",
        _marks(state, got),
        _json(got.echo) or {},
        got.turn or "",
        got.reply_id,
    )


def _marks(state: State, got: ToldAnswer) -> dict[str, Any]:
    marks: dict[str, Any] = _json(got.marks) or {}
    if got.forgotten:
        marks |= _forgotten(got.forgotten)
    if got.cancel_requested:
        marks["cancel_requested"] = True
    if got.reason and not state.is_settled:
        marks["reason"] = got.reason
    if got.duplicate_of and state is State.HELD:
        marks["duplicate_of"] = got.duplicate_of
    if got.follows:
        marks["follows"] = got.follows
    if got.first_unknown and state is State.HELD:
        marks["first_state"] = State.UNKNOWN.value
    if got.may_have_run and state is not State.SUCCEEDED:
        marks["may_have_run"] = True
    if got.argument_errors:
        marks["argument_errors"] = int(got.argument_errors)
    if state is State.RUNNING and got.progress is not None:
        fraction = got.progress
        marks["progress"] = {"fraction": float(fraction) if fraction else None, "message": got.progress_message}
    return marks


def _forgotten(stored: str) -> dict[str, Any]:
    """When the call came to rest and when its body was taken (ms of Redis time), and the bytes of its result."""
    told = [int(number) for number in stored.split()]
    names = ("settled_at", "forgotten_at", "size") if len(told) > 1 else ()
    return {"forgotten": True} | dict(zip(names, told, strict=bool(names)))


def read_failure(stored: str | None) -> Failure | None:
    """The stored failure, if there is one."""
    return Failure.of(_json(stored))


def raised_json(raised: Mapping[str, Any] | None) -> str:
    """The exception that ended an attempt, as the scripts take it; "" for none."""
    return json.dumps(raised) if raised else ""


def failure_json(failure: Failure | None) -> str:
    """A failure as it is stored; "" for none."""
    if failure is None:
        return ""
    stored = {"code": whole_text(failure.code), "message": whole_text(failure.message)}
    effect = {"effect": failure.effect} if failure.effect else {}
    details = {"details": plain_value(failure.details)} if failure.details else {}
    return json.dumps({**stored, **details, **effect})


def _json(stored: str | None) -> Any:
    if not stored:
        return None
    try:
        value, end = _scan(stored, 0)
    except StopIteration:
        end = -1
    return value if end == len(stored) else _JSON.decode(stored)  # blanks around it, or no JSON
