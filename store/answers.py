"""Reads what scripts say about a call into an Outcome. The order of fields is that of `_answer.lua`."""

from __future__ import annotations

import json
from typing import Any

from .outcomes import Failure, Outcome
from .scripts import number, text
from .states import State

ANSWER_FIELDS = (
    "state", "tool", "call_id", "position", "kind", "ikey", "attempt", "fence", "reason",
    "result", "error", "marks", "echo", "cancel_requested", "forgotten", "turn", "progress",
    "progress_message", "slip", "duplicate_of",
)  # fmt: skip


def read_outcome(key: str, reply: list[bytes | None], *, replayed: bool = False, conflict: bool = False) -> Outcome:
    """One call's answer as a value."""
    got = dict(zip(ANSWER_FIELDS, reply, strict=True))
    state = State(text(got["state"]) or "")
    failure = None if state is State.SUCCEEDED else read_failure(got["error"])
    if conflict:
        failure = Failure(
            "conflict", "this call id was used in this turn with another tool or other arguments; not run"
        )
    return Outcome(
        key=key,
        idempotency_key=text(got["ikey"]) or "",
        tool=text(got["tool"]) or "",
        call_id=text(got["call_id"]),
        position=number(got["position"]),
        state=state,
        value=_json(got["result"]) if state is State.SUCCEEDED and not conflict else None,
        failure=failure,
        replayed=replayed and state.is_settled,
        conflict=conflict,
        attempt=number(got["attempt"]),
        fence=number(got["fence"]),
        kind=text(got["kind"]) or "function",
        echo=_json(got["echo"]) or {},
        marks=_marks(state, got),
        turn_id=text(got["turn"]) or "",
    )


def _marks(state: State, got: dict[str, bytes | None]) -> dict[str, Any]:
    marks: dict[str, Any] = _json(got["marks"]) or {}
    if got["forgotten"]:
        marks["forgotten"] = True
    if got["cancel_requested"]:
        marks["cancel_requested"] = True
    if got["reason"] and not state.is_settled:
        marks["reason"] = text(got["reason"])
    if got["duplicate_of"] and state is State.HELD:
        marks["duplicate_of"] = text(got["duplicate_of"])
    if got["slip"]:
        marks["slip"] = number(got["slip"])
    if state is State.RUNNING and got["progress"] is not None:
        fraction = text(got["progress"])
        marks["progress"] = {
            "fraction": float(fraction) if fraction else None,
            "message": text(got["progress_message"]),
        }
    return marks


def read_failure(stored: bytes | None) -> Failure | None:
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


def _json(stored: bytes | None) -> Any:
    return json.loads(stored) if stored else None
