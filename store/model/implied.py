"""What the record of a call does not store, since the rest of it implies the same.

Pure. A call to which only the usual has happened (queued, claimed once, settled by that worker) has few fields and no
stored history: the scripts write both out before the first thing that the record does not say (`lua/_history.lua`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .record import RecordFields
from .states import State

_ENDS = (State.SUCCEEDED, State.FAILED)
"""How a worker's first attempt usually ends."""


def with_implied(stored: Mapping[str, str]) -> RecordFields:
    """A whole record with the fields that it implies."""
    values = dict(stored)
    values.setdefault("kind", "function")
    values.setdefault("attempt", "0")
    if "max_attempts" in values:
        values.setdefault("attempt_limit", values["max_attempts"])
    if values.get("state") in _ENDS and "worker" in values:
        values.setdefault("settled_by", f"{values['worker']}/{values.get('token', '')}")
        values.setdefault("settled_at", values.get("changed_at", ""))
    return RecordFields(values)


def implied_history(fields: RecordFields) -> Iterator[dict[str, Any]]:
    """The lines of a history that is not stored, oldest first, as the scripts would write them out."""
    if fields.forgotten:
        return
    about = {"tool": fields.tool}
    run = {**about, "actor": fields.worker, "fence": fields.fence, "attempt": fields.attempt}
    yield {"op": "admit", "actor": "submit", "at": fields.admitted_at, "to": "queued", **about}
    if fields.claimed_at is not None:
        yield {"op": "claim", "at": fields.claimed_at, "from": "queued", "to": "running", **run}
        if fields.state in _ENDS:
            yield {"op": "settle", "at": fields.settled_at, "from": "running", "to": fields.state, **run}
