"""How one entry into a handler ended, as a value that can cross a process border.

Decides what each exception means for the entry itself, and what may be told of it; what follows for the call is the
policy's. Knows no store.
"""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from ...store.model.plain import plain_value, whole_text
from ...store.model.secret_texts import NO_SECRETS, Secrets
from .errors import CancelRequested, DidNotHappen, LeaseLost, NotStarted, ToolError
from .tracebacks import place_of, traceback_of


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
    ABSENT = "absent"
    """A reconcile alone says it: the effect is not there."""


@dataclass(frozen=True, slots=True)
class End:
    """How it ended.

    Attributes:
        result: JSON text of the value, where it returned.
        marks: JSON text of facts about the stored form, "" for none.
        code: the word for a failure; message: one line about it.
        retry_after: seconds, where the handler asked for a wait.
        effect: ``none`` where the handler says that this attempt has had none.
        raised: of an exception: type, file, line, and message where it may be told; for the call's history.
        traceback: of an exception, for the worker's log.
    """

    kind: Kind
    result: str = ""
    marks: str = ""
    code: str = ""
    message: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    retry_after: float | None = None
    effect: str = ""
    raised: dict[str, Any] = field(default_factory=dict)
    traceback: str = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> End:
        stored = json.loads(text)
        return cls(**{**stored, "kind": Kind(stored["kind"])})


MESSAGE_KEPT = 2_000
"""Characters of a text of a tool's that are stored; the rest of it helps no model and fills the server."""
HISTORY_KEPT = 500
"""Characters of it in the call's history, where each attempt has a line."""


def classify(
    error: BaseException, not_started: tuple[type[BaseException], ...] = (), secrets: Secrets = NO_SECRETS
) -> End:
    """What an exception out of a handler means. `not_started` are the tool's own words for "nothing happened".

    What `ToolError` and `NotStarted` say is told without the secrets. The text of any other exception, and of what
    caused it, is not told at all where the tool has secret fields.
    """
    match error:
        case LeaseLost():
            return End(Kind.LEASE_LOST, code="lease_lost", message=told(str(error)))
        case CancelRequested():
            return End(Kind.CANCELLED, code="cancelled", message="stopped on request")
    raised = {**_placed(error, secrets), "message": described(error, secrets)[:HISTORY_KEPT]}
    known: dict[str, Any] = {"traceback": traceback_of(error, secrets)}
    known["raised"] = {name: value for name, value in raised.items() if value}
    match error:
        case ToolError():
            known |= {"details": _details(error.details, secrets), "effect": "none" if error.effect == "none" else ""}
            return End(Kind.TOOL_ERROR, code=told(error.code, secrets), message=told(error, secrets), **known)
        case NotStarted():
            after = _seconds(error.retry_after)
            return End(Kind.NOT_STARTED, code="not_started", message=told(error, secrets), retry_after=after, **known)
        case _ if isinstance(error, not_started):
            return End(Kind.NOT_STARTED, code="not_started", message=named(error, secrets), **known)
        case _:
            return End(Kind.RAISED, code="exception", message=named(error, secrets), **known)


def named(error: BaseException, secrets: Secrets = NO_SECRETS) -> str:
    """The exception's type, and its text where it may be told, in one line."""
    kind = "cancelled from inside" if isinstance(error, asyncio.CancelledError) else type(error).__name__
    text = described(error, secrets)
    return f"{secrets.scrub(kind)}: {text}" if text else secrets.scrub(kind)


def described(error: BaseException, secrets: Secrets) -> str:
    """The exception's text in one line, "" where it may not be told."""
    is_for_others = isinstance(error, (ToolError, NotStarted, DidNotHappen))
    return told(error, secrets) if is_for_others or not secrets else ""


def told(words: object, secrets: Secrets = NO_SECRETS) -> str:
    """A text of a tool's, in one line of at most `MESSAGE_KEPT` characters; the secrets go first, while it is whole."""
    text = " ".join(whole_text(secrets.scrub(whole_text(words))).split())
    return text if len(text) <= MESSAGE_KEPT else f"{text[:MESSAGE_KEPT]} ..."


def _placed(error: BaseException, secrets: Secrets) -> dict[str, Any]:
    file, line = place_of(error)
    return {"type": secrets.scrub(type(error).__name__), "file": secrets.scrub(whole_text(file)), "line": line}


def _details(details: Any, secrets: Secrets) -> dict[str, Any]:
    """Details as JSON takes them; they come from user code."""
    plain = secrets.scrub_value(plain_value(details))
    return plain if isinstance(plain, dict) else {"details": plain}


def _seconds(given: Any) -> float | None:
    """A wait that was asked for; also as the text of a Retry-After header. None for what is not a number."""
    try:
        number = float(given)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
