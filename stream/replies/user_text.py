"""Chooses the message for a user: for the outcome of a call, or for a turn that gave no calls.

Decides the message code; `Translations` holds the texts. A message for a user never quotes the provider or a
tool: details stay in the outcome and in the error, for logs and operators.
"""

from __future__ import annotations

from ...store.model.outcomes import Outcome
from ...store.model.states import State
from ..turns.errors import TurnError
from ..turns.turn import TurnResult
from .translations import FALLBACK, TRANSLATIONS, MessageCode, Translations

_STATES: dict[State | None, MessageCode] = {
    State.SUCCEEDED: MessageCode.CALL_SUCCEEDED,
    State.FAILED: MessageCode.CALL_FAILED,
    State.UNKNOWN: MessageCode.CALL_UNKNOWN,
    State.CANCELLED: MessageCode.CALL_CANCELLED,
    State.EXPIRED: MessageCode.CALL_EXPIRED,
    State.RUNNING: MessageCode.CALL_RUNNING,
    State.QUEUED: MessageCode.CALL_WAITING,
    State.HELD: MessageCode.CALL_WAITING,
    None: MessageCode.CALL_WAITING,
}

# Refusals because of wrong calls, not because somebody decided against them.
_ARGUMENT_FAILURES = frozenset(
    {
        "invalid_arguments", "unknown_tool", "invalid_json", "not_an_object", "duplicate_key", "non_finite",
        "lone_surrogate", "too_deep", "too_large", "too_costly", "not_text", "unusable_name", "unusable_id",
    }
)  # fmt: skip

_TURNS: dict[str, MessageCode] = {
    "truncated": MessageCode.TURN_TRUNCATED,
    "filtered": MessageCode.TURN_FILTERED,
    "aborted": MessageCode.TURN_ABORTED,
    "malformed": MessageCode.TURN_UNUSABLE,
    "withheld": MessageCode.TURN_UNUSABLE,
    "paused": MessageCode.TURN_PAUSED,
}

_BUSY = frozenset({429, 503, 529})
_BUSY_WORDS = ("overloaded", "rate_limit", "throttling", "resource_exhausted", "unavailable", "too_many_requests")
_OURS = frozenset({400, 401, 403, 404, 413, 422})
_OURS_WORDS = ("invalid_request", "invalid_argument", "authentication", "permission", "not_found")


def for_user(
    told: Outcome | TurnResult | TurnError, locale: str = FALLBACK, *, translations: Translations = TRANSLATIONS
) -> str:
    """The message for a user in their language; ``message_code`` chooses it.

    Args:
        locale: ``en``, ``es``, ``nl`` or a region of them. Another language falls back to English, unless
            `translations` has it.
    """
    tool = told.tool if isinstance(told, Outcome) else ""
    return translations.text(message_code(told), locale, tool=tool)


def message_code(told: Outcome | TurnResult | TurnError) -> MessageCode:
    """The code of the message for an outcome, a turn or an error.

    Raises:
        ValueError: the turn is completed; its own text is the message.
    """
    match told:
        case Outcome():
            return _call_code(told)
        case TurnResult(outcome="completed"):
            raise ValueError("a completed turn has no message code: show its own text")
        case TurnResult(outcome="aborted", bytes_seen=0):
            return MessageCode.PROVIDER_UNREACHABLE
        case TurnResult():
            error = told.error
            return _turn_code(told.outcome, error.status if error else None, error.code if error else None)
        case TurnError(outcome="aborted", bytes_seen=0 | None):
            return MessageCode.PROVIDER_UNREACHABLE
        case TurnError():
            return _turn_code(told.outcome, told.status, told.code)


def _call_code(outcome: Outcome) -> MessageCode:
    failure = outcome.failure.code if outcome.failure else ""
    if outcome.conflict:
        return MessageCode.CALL_CONFLICT
    held_back = outcome.state is State.HELD and outcome.marks.get("reason") == "store_went_back"
    if held_back or (outcome.was_tried and outcome.may_have_run):
        return MessageCode.CALL_UNCONFIRMED
    if outcome.follows_unknown or outcome.was_tried or (failure == "purged" and not outcome.nothing_ran):
        return MessageCode.CALL_UNKNOWN
    if outcome.state is State.REFUSED or (outcome.state is None and failure):
        return _refusal_code(failure)
    if outcome.waits_for_a_person:  # to compare is another question, and told above
        return MessageCode.CALL_NEEDS_APPROVAL
    if outcome.state is State.FAILED and outcome.nothing_ran:
        return MessageCode.CALL_CANCELLED if failure == "cancelled" else MessageCode.CALL_NOT_RUN
    return _STATES[outcome.state if isinstance(outcome.state, State) else None]


def _refusal_code(failure: str) -> MessageCode:
    if failure in _ARGUMENT_FAILURES:
        return MessageCode.CALL_INVALID
    return MessageCode.CALL_DENIED if failure == "denied" else MessageCode.CALL_REFUSED


def _turn_code(outcome: str, status: int | str | None, code: str | None) -> MessageCode:
    if outcome != "failed":
        return _TURNS[outcome]
    words = f"{status} {code}".lower()
    if status in _BUSY or any(word in words for word in _BUSY_WORDS):
        return MessageCode.PROVIDER_BUSY
    ours = status in _OURS or any(word in words for word in _OURS_WORDS)
    return MessageCode.PROVIDER_REFUSED if ours else MessageCode.PROVIDER_FAILED
