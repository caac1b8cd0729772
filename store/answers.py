"""Reads what the store says about a call into an Outcome. The order of fields is that of `_answer.lua`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from .errors import CorruptRecord
from .outcomes import Failure, Outcome
from .states import State


class _Answer(NamedTuple):
    state: str | None
    tool: str | None
    call_id: str | None
    position: str | None
    kind: str | None
    ikey: str | None
    attempt: str | None
    fence: str | None
    reason: str | None
    result: str | None
    error: str | None
    marks: str | None
    echo: str | None
    cancel_requested: str | None
    forgotten: str | None
    turn: str | None
    progress: str | None
    progress_message: str | None
    slip: str | None
    duplicate_of: str | None
    may_have_run: str | None


ANSWER_FIELDS = _Answer._fields
_STATES = {state.value: (state, state.is_settled) for state in State}
_JSON = json.JSONDecoder()
_scan: Callable[[str, int], tuple[Any, int]] = _JSON.scan_once  # type: ignore[attr-defined]  # unknown to typeshed


def read_outcome(key: str, reply: list[bytes | None], *, replayed: bool = False, conflict: bool = False) -> Outcome:
    """One call's answer as a value.

    Raises:
        CorruptRecord: what is stored is no answer.
    """
    try:
        return _read(key, reply, replayed=replayed, conflict=conflict)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:  # JSON, but of another shape
        raise CorruptRecord(f"call {key}: its record cannot be read: {error}") from error


def _read(key: str, reply: list[bytes | None], *, replayed: bool, conflict: bool) -> Outcome:
    got = _Answer._make([None if field is None else field.decode() for field in reply])
    state, is_settled = _STATES[got.state or ""]
    failure = None if state is State.SUCCEEDED else read_failure(got.error)
    if conflict:
        failure = Failure(
            "conflict", "this call id was used in this turn with another tool or other arguments; not run"
        )
    # By position: by name takes a third longer, and this stands in the way of every replay.
    return Outcome(
        key,
        got.ikey or "",
        got.tool or "",
        got.call_id,
        int(got.position or 0),
        state,
        _json(got.result) if state is State.SUCCEEDED and not conflict else None,
        failure,
        replayed and is_settled,
        conflict,
        int(got.attempt or 0),
        int(got.fence or 0),
        got.kind or "function",
        _marks(state, got),
        _json(got.echo) or {},
        got.turn or "",
    )


def _marks(state: State, got: _Answer) -> dict[str, Any]:
    marks: dict[str, Any] = _json(got.marks) or {}
    if got.forgotten:
        marks["forgotten"] = True
    if got.cancel_requested:
        marks["cancel_requested"] = True
    if got.reason and not state.is_settled:
        marks["reason"] = got.reason
    if got.duplicate_of and state is State.HELD:
        marks["duplicate_of"] = got.duplicate_of
    if got.may_have_run and state is not State.SUCCEEDED:
        marks["may_have_run"] = True
    if got.slip:
        marks["slip"] = int(got.slip)
    if state is State.RUNNING and got.progress is not None:
        fraction = got.progress
        marks["progress"] = {"fraction": float(fraction) if fraction else None, "message": got.progress_message}
    return marks


def read_failure(stored: str | None) -> Failure | None:
    """The stored failure, if there is one."""
    value = _json(stored)
    if not value:
        return None
    details = value.get("details") or {}
    return Failure(value.get("code", ""), value.get("message", ""), details if isinstance(details, dict) else {})


def failure_json(failure: Failure | None) -> str:
    """A failure as it is stored; "" for none."""
    if failure is None:
        return ""
    return json.dumps({"code": failure.code, "message": failure.message, "details": failure.details})


def _json(stored: str | None) -> Any:
    if not stored:
        return None
    try:
        value, end = _scan(stored, 0)
    except StopIteration:
        end = -1
    return value if end == len(stored) else _JSON.decode(stored)  # blanks around it, or no JSON
