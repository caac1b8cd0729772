"""What callers get back about a call: one frozen value per answer, never an exception.

Decides the shapes that harnesses, workers and operators see. Knows no Redis and no wire format.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .errors import CallNotSucceeded
from .states import NotStored, State

_ENDED_WAITING = frozenset({State.REFUSED, State.CANCELLED, State.EXPIRED})


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call has no value, in words fit for a model or an operator.

    Attributes:
        code: a stable word, for example ``tool_error``, ``invalid_arguments``, ``too_costly``, ``unknown_tool``,
            ``denied``, ``expired``, ``cancelled``, ``attempts_exhausted``, ``interrupted``, ``worker_lost``.
        message: one line of text; never holds arguments of secret fields.
        details: JSON-like extra facts, for example the schema path that was violated; of a conflict ``first``, what
            became of the first call: tool, state, attempt, and reason and error where there are any.
        effect: ``none`` where it is certain that no attempt has had an effect, although there was one; else empty. A
            tool may say it of its own attempt (``ToolError(effect="none")``); the store counts those before.
    """

    code: str
    message: str
    details: dict[str, Any] = field(default_factory=dict)
    effect: str = ""

    @classmethod
    def of(cls, stored: dict[str, Any] | None) -> Failure | None:
        """The failure in its stored form; None where there is none."""
        if not stored:
            return None
        details = stored.get("details") or {}
        details = details if isinstance(details, dict) else {}
        return cls(stored.get("code", ""), stored.get("message", ""), details, stored.get("effect", ""))

    def to_json(self) -> dict[str, Any]:
        """The stored form, which is the external one too: without what is empty."""
        form: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.details:
            form["details"] = self.details
        return form | {"effect": self.effect} if self.effect else form


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer for one call, in the order of the turn.

    ``value`` counts only where ``state`` is ``State.SUCCEEDED``; false-like values are values. A call that is
    not settled has ``settled`` false and, for ``unknown``, a ``failure`` that says what is not known.

    Attributes:
        key: the call key, 32 hex digits.
        idempotency_key: what a handler forwards downstream.
        call_id: the provider's id exactly as it came, None where none came.
        reply_id: what stands in for it in history and result, since an earlier turn of the scope used it; else None.
        replayed: True when this answer came from the store without execution being asked for now.
        state: where the call stands; ``conflict`` when the submission named it with another tool or other arguments
            (G6); None where nothing is stored.
        conflict: True for a conflict; the rest of the answer then describes nothing but the refusal.
        marks: facts about the stored form, for example ``{"truncated": true, "size": 70000000}`` or
            ``{"lossy": true}``; ``{"durable": false}`` where a failover may forget this answer; of a forgotten body
            ``forgotten``, with ``settled_at``, ``forgotten_at`` (ms of Redis time) and the ``size`` of its result; of a
            running call ``progress`` with its fraction and message; of one with unusable arguments ``argument_errors``,
            how many turns in a row gave this tool such arguments in this scope; of a call that came after an equal one,
            by the tool's unique key, ``follows``: the key of that call, whose outcome is this one's too, and
            ``first_state`` where that one is unknown, or ended while it waited to run again; empty as a rule.
        turn_id: the turn that the call was stored under; another than the one submitted where an intent key found it.
        echo: sibling fields of the call that the provider wants back with its result (caller, toolset name,
            namespace, ...), as the decoder kept them; empty as a rule.
    """

    key: str
    idempotency_key: str
    tool: str
    call_id: str | None
    position: int
    state: State | NotStored | None
    value: Any = None
    failure: Failure | None = None
    replayed: bool = False
    conflict: bool = False
    attempt: int = 0
    fence: int = 0
    kind: str = "function"
    marks: dict[str, Any] = field(default_factory=dict)
    echo: dict[str, Any] = field(default_factory=dict)
    turn_id: str = ""
    reply_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The one form in which an outcome leaves this program: ``--json`` of the command line, and all interfaces.

        An inbox answer has the same members as texts (PROTOCOL.md), without those that its reader knows: ``turn``,
        ``idempotency_key``, ``replayed``, ``attempt``.

        Members: ``call`` (the call key), ``idempotency_key``, ``turn``, ``position``, ``id`` (the provider's, as it
        came; null where none came), ``reply_id`` (null as a rule), ``name`` (the tool), ``state`` (also ``conflict``),
        ``replayed``, ``attempt``. Only where there is one: ``result`` (so that null is a result; there is none where
        ``marks`` say ``forgotten``), ``error`` with ``code``, ``message`` and, if any, ``details`` and ``effect``;
        ``marks``.
        """
        form: dict[str, Any] = {
            "call": self.key, "idempotency_key": self.idempotency_key, "turn": self.turn_id, "position": self.position,
            "id": self.call_id, "reply_id": self.reply_id, "name": self.tool, "state": self.word,
            "replayed": self.replayed, "attempt": self.attempt,
        }  # fmt: skip
        if self.has_value and not self.is_forgotten:
            form["result"] = self.value
        if self.failure:
            form["error"] = self.failure.to_json()
        if self.marks:
            form["marks"] = self.marks
        return form

    @property
    def word(self) -> str:
        """The state as text; ``conflict``, which is an answer and no state, where it is one."""
        return "conflict" if self.conflict else str(self.state)

    @property
    def has_value(self) -> bool:
        """True where `value` counts: the call succeeded."""
        return self.state is State.SUCCEEDED and not self.conflict

    @property
    def is_forgotten(self) -> bool:
        """True where the body of the call is stored no longer: what became of it is known, its result is not."""
        return "forgotten" in self.marks

    def result_or_raise(self) -> Any:
        """The value of a call that succeeded; it may be false-like, and cut where ``marks`` says ``truncated``.

        Raises:
            CallNotSucceeded: there is none. The error has this outcome: ask it what may be done next.
        """
        if not self.has_value:
            raise CallNotSucceeded(f"call {self.key[:12]} of tool {self.tool}: {self._why_no_result()}", self)
        if self.is_forgotten:
            raise CallNotSucceeded(f"call {self.key[:12]} of tool {self.tool}: its result is kept no longer", self)
        return self.value

    def _why_no_result(self) -> str:
        return f"{self.word}, {self.failure.code}: {self.failure.message}" if self.failure else self.word

    @property
    def settled(self) -> bool:
        """True when the call has come to its final rest (unknown is not settled)."""
        return self.conflict or (self.state is not None and self.state.is_settled)

    @property
    def pending(self) -> bool:
        """True while the call waits or runs; an answer may still come without anyone asking."""
        return not self.settled and self.state is not State.UNKNOWN and not self.follows_unknown

    @property
    def follows_unknown(self) -> bool:
        """True for a call that waits for the outcome of an equal one, of which nobody knows whether it had its
        effect."""
        return self.state is State.HELD and self.marks.get("first_state") == State.UNKNOWN

    @property
    def waits_for_a_person(self) -> bool:
        """True for a call that is held until a person approves or denies it, or compares what became of it."""
        asks = self.marks.get("reason") in ("approval", "duplicate", "store_went_back") and "follows" not in self.marks
        return self.state is State.HELD and asks

    @property
    def is_durable(self) -> bool:
        """False where a failover may forget this answer: too few replicas had it when it was read."""
        return self.marks.get("durable") is not False

    @property
    def nothing_ran(self) -> bool:
        """True where it is certain that nothing was executed for this call: it is over, and no attempt was made, or
        none that can have had an effect."""
        if self.conflict or (self.state is None and self.failure is not None):
            return True
        untouched = self.failure is not None and self.failure.effect == "none"
        never_tried = self.state in _ENDED_WAITING and self.attempt == 0
        ended_so = self.state is State.FAILED or self.state in _ENDED_WAITING
        return ended_so and (untouched or never_tried) and not self.may_have_run

    @property
    def was_tried(self) -> bool:
        """True for a call that was refused, cancelled or expired while it waited to run again: nothing ran then, but
        an attempt before may have had its effect. Also where such an attempt may have been lost with its record."""
        return self.state in _ENDED_WAITING and not self.nothing_ran

    @property
    def may_have_run(self) -> bool:
        """True where the store has lost writes, and the call may have run in those moments, whatever its attempts say;
        a person has to compare. False once the call is resolved."""
        return bool(self.marks.get("may_have_run"))

    @property
    def has_repeated_argument_error(self) -> bool:
        """True when the model gave unusable arguments for this tool again, without a success in between: correcting
        once is fair, more than that costs turns and helps nobody."""
        return bool(self.marks.get("argument_errors", 0) > 1)
