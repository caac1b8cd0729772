"""What a decoder hands over at the end of a turn: the calls, what became of the turn, and what it said.

Frozen values, no behaviour beyond reading them. Words: DESIGN, and the policy in ``tests/data/conformance``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Dialect = Literal["openai-responses", "openai-chat", "anthropic", "google-generate", "google-interactions"]
DIALECTS: tuple[Dialect, ...] = (
    "openai-responses",
    "openai-chat",
    "anthropic",
    "google-generate",
    "google-interactions",
)
TurnOutcome = Literal[
    "completed", "truncated", "filtered", "failed", "aborted", "malformed", "paused", "withheld"
]
Kind = Literal["function", "custom"]


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
    call_id: str | None
    kind: Kind
    position: int
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
