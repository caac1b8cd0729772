"""What a decoder hands over at the end of a turn: the calls, what became of the turn, and what it said.

Frozen values, no behaviour beyond reading them; how a verdict comes about is not known here.
The words are those of the policy in ``tests/data/conformance/README.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from ..wire.frames import ProviderError
from .errors import TurnError, turn_error

Dialect = Literal[
    "openai-responses", "openai-chat", "anthropic", "google-generate", "google-interactions", "bedrock-converse"
]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
TurnOutcome = Literal["completed", "truncated", "filtered", "failed", "aborted", "malformed", "paused", "withheld"]
CallKind = Literal["function", "custom"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a completed turn.

    Attributes:
        name: the tool's name as the model gave it.
        arguments: a JSON object for ``function`` (integers exact), the input text for ``custom``.
        call_id: the provider's id, byte for byte; None where none was given.
        position: 0-based place among all calls of the turn, rejected ones included; identity inside the turn.
        turn_id: the first non-empty response, message or interaction id of the stream; None where there was none.
        echo: sibling fields that the provider wants back with the call or its result (signature, caller, ...).
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
    """A call of a completed turn that is refused for its argument text, while its siblings run.

    Attributes:
        reason: ``invalid_json``, ``not_an_object``, ``duplicate_key``, ``non_finite``, ``lone_surrogate``,
            ``too_deep`` or ``too_large``.
        raw: the argument text as it came; the fingerprint of the refused record is taken over it.
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
        outcome: what became of the turn; only ``completed`` has calls.
        calls: the calls to run, in order of first appearance.
        rejected: the calls of a completed turn that are refused one by one.
        text: the visible text of the assistant, as far as it came, whatever the outcome.
        turn_id: the first non-empty response, message or interaction id; None where the server sent none.
        assistant: what the provider wants to see again before the results, in order: content blocks (Anthropic,
            Converse), output items (Responses), one message (Chat), parts of the model's content (Generate), steps
            (Interactions). The calls in it are exactly ``calls`` and ``rejected``; arguments are always valid:
            ``{}`` for empty and for rejected ones. Empty unless the turn is ``completed`` or ``paused``: any other
            turn leaves the history as it was.
        stop: the provider's own word for the end (``tool_use``, ``STOP``); None where it sent none.
        error: the provider's error; None where it reported none.
        usage: the last usage object as it came; counts are the provider's.
        diagnostics: what was odd, for a developer; the first one names the reason of a bad outcome.
        order: the positions of the calls as they stand in ``assistant``, where that is not their own order: a server
            may begin its second item first.
        limit: the name of the limit that was passed (see ``limits.py``); None if none was.
        bytes_seen: bytes fed, whatever became of them.
        tokens_seen: output tokens by ``usage``; None where the stream ended before it was told.
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
        """Whether the turn lacks its proper end: cut by a length limit, or the stream just stopped."""
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
