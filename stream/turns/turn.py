"""The result of a decoded turn: its outcome, its calls and its text.

Frozen values without behaviour. Must not know how an outcome is decided. The names of outcomes and reasons are defined
in ``tests/data/conformance/README.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ...store.model.dialects import DIALECTS as DIALECTS
from ...store.model.dialects import Dialect as Dialect
from ..wire.frames import ProviderError
from .errors import TurnError, turn_error

TurnOutcome = Literal["completed", "truncated", "filtered", "failed", "aborted", "malformed", "paused", "withheld"]
CallKind = Literal["function", "custom"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a completed turn.

    Attributes:
        name: the tool's name as the model gave it.
        arguments: a JSON object for ``function`` (integers exact), the input text for ``custom``.
        call_id: the provider's id, byte for byte; None where none was given.
        position: 0-based index among all calls of the turn, rejected ones included.
        turn_id: the first non-empty response, message or interaction id of the stream; None where there was none.
        echo: other fields that the provider expects back with the call or its result (signature, caller, ...).
    """

    name: str
    arguments: dict[str, Any] | str
    call_id: str | None = None
    kind: CallKind = "function"
    position: int = 0
    turn_id: str | None = None
    echo: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RejectedCall:
    """A call of a completed turn that is refused for its arguments, while the other calls run.

    Attributes:
        reason: ``invalid_json``, ``not_an_object``, ``duplicate_key``, ``non_finite``, ``lone_surrogate``,
            ``too_deep`` or ``too_large``.
        raw: the argument text as it came; the fingerprint of the stored record is computed from it.
    """

    name: str
    call_id: str | None
    reason: str
    position: int
    raw: str = ""
    turn_id: str | None = None
    echo: dict[str, Any] = field(default_factory=dict)
    kind: CallKind = "function"


@dataclass(frozen=True, slots=True)
class TurnResult:
    """One provider response, decoded.

    Attributes:
        outcome: how the turn ended; only a ``completed`` one has calls.
        calls: the calls to run, in order of first appearance.
        rejected: the calls that are refused for their arguments.
        text: the visible text of the assistant as far as it arrived, whatever the outcome.
        turn_id: the first non-empty response, message or interaction id; None where the server sent none.
        assistant: what the provider expects back before the results, in order: content blocks (Anthropic,
            Converse), output items (Responses), one message (Chat), parts of the model's content (Generate), steps
            (Interactions). The calls in it are exactly ``calls`` and ``rejected``; arguments are always valid:
            ``{}`` for empty and for rejected ones. Empty unless the turn is ``completed`` or ``paused``: any other
            turn leaves the history as it was.
        stop: the provider's stop reason (``tool_use``, ``STOP``); None where it sent none.
        error: the provider's error; None where it reported none.
        usage: the provider's token counts, newest values first.
        diagnostics: oddities, for a developer; the first one is the reason of an outcome other than ``completed``.
        order: the positions of the calls in the order of ``assistant``, where the two orders differ: a server may begin
            its second item first.
        limit: the name of the exceeded limit (see `TurnLimits`); None where none was.
        bytes_seen: bytes that the decoder received.
        tokens_seen: output tokens according to ``usage``; None where the stream ended before the usage came.
    """

    dialect: Dialect
    outcome: TurnOutcome
    calls: tuple[ToolCall, ...] = ()
    rejected: tuple[RejectedCall, ...] = ()
    text: str = ""
    turn_id: str | None = None
    assistant: tuple[dict[str, Any], ...] = ()
    stop: str | None = None
    error: ProviderError | None = None
    usage: dict[str, Any] | None = None
    diagnostics: tuple[str, ...] = ()
    limit: str | None = None
    bytes_seen: int = 0
    tokens_seen: int | None = None
    order: tuple[int, ...] = ()

    @property
    def truncated(self) -> bool:
        """Whether the turn has no proper end: a length limit cut it, or the stream stopped."""
        return self.outcome == "truncated"

    def require_calls(self) -> tuple[ToolCall, ...]:
        """The calls of a completed turn.

        Raises:
            TurnError: the subclass for this outcome, when the turn is not ``completed``.
        """
        if self.outcome != "completed":
            raise self._error()
        return self.calls

    def _error(self) -> TurnError:
        error = self.error or ProviderError()
        return turn_error(
            self.outcome,
            dialect=self.dialect,
            turn_id=self.turn_id,
            reason=self.diagnostics[0] if self.diagnostics else None,
            stop=self.stop,
            code=error.code,
            message=error.message,
            status=error.status,
            limit=self.limit,
            bytes_seen=self.bytes_seen,
            tokens_seen=self.tokens_seen,
        )
