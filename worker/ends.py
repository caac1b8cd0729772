"""How one entry into a handler ended, as a value that can cross a process border.

Decides what each exception means for the entry itself; what follows for the call is the policy's. Knows no store.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from .errors import CancelRequested, LeaseLost, NotStarted, ToolError


class Kind(StrEnum):
    """The ways to end."""

    RETURNED = "returned"
    TOOL_ERROR = "tool_error"
    NOT_STARTED = "not_started"
    """Said by the handler, or by an exception that the tool declares equal to it."""
    RAISED = "raised"
    CANCELLED = "cancelled"
    """The handler let `CancelRequested` pass."""
    LEASE_LOST = "lease_lost"
    TIMED_OUT = "timed_out"
    """The run limit passed; the handler may still be at work, except in a process of its own."""
    DIED = "died"
    """The process that ran the handler died."""


@dataclass(frozen=True, slots=True)
class End:
    """How it ended.

    Attributes:
        result: JSON text of the value, where it returned.
        marks: JSON text of facts about the stored form, "" for none.
        code: the word for a failure; message: one line about it.
        retry_after: seconds, where the handler asked for a wait.
    """

    kind: Kind
    result: str = ""
    marks: str = ""
    code: str = ""
    message: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    retry_after: float | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> End:
        stored = json.loads(text)
        return cls(**{**stored, "kind": Kind(stored["kind"])})


MESSAGE_KEPT = 2_000
"""Characters of an exception's text that are stored; the rest of it helps no model and fills the server."""


def classify(error: BaseException, not_started: tuple[type[BaseException], ...] = ()) -> End:
    """What an exception out of a handler means. `not_started` are the tool's own words for "nothing happened"."""
    match error:
        case ToolError():
            return End(Kind.TOOL_ERROR, code=error.code, message=describe(error), details=_plain(error.details))
        case NotStarted():
            return End(Kind.NOT_STARTED, code="not_started", message=describe(error), retry_after=error.retry_after)
        case LeaseLost():
            return End(Kind.LEASE_LOST, code="lease_lost", message=describe(error))
        case CancelRequested():
            return End(Kind.CANCELLED, code="cancelled", message="stopped on request")
        case _ if isinstance(error, not_started):
            return End(Kind.NOT_STARTED, code="not_started", message=named(error))
        case _:
            return End(Kind.RAISED, code="exception", message=named(error))


def named(error: BaseException) -> str:
    """The exception's type and text, in one line."""
    kind = "cancelled from inside" if isinstance(error, asyncio.CancelledError) else type(error).__name__
    text = describe(error)
    return f"{kind}: {text}" if text else kind


def describe(error: BaseException) -> str:
    """The exception's text, whatever its `__str__` does."""
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be read)"
    text = " ".join(text.encode("utf-8", "replace").decode().split())
    return text if len(text) <= MESSAGE_KEPT else f"{text[:MESSAGE_KEPT]} ..."


def _plain(details: dict[str, Any]) -> dict[str, Any]:
    """Details as JSON takes them; they come from user code."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(details, default=repr, skipkeys=True))
    except (ValueError, RecursionError):
        return {"note": "the details were no JSON"}
    return plain
