"""A call that is submitted alone: decides which id makes a repeat of it the same call."""

from __future__ import annotations

from typing import Any, TypedDict

from ...store.model.errors import CallIdMissing
from ..turns.turn import CallKind, ToolCall
from .submission import SubmissionTerms, Submitting, asked, usable_turn_id


class CallOptions(TypedDict, total=False):
    """The options of ``client.call``.

    Attributes:
        intent: your own key of the action, which finds the call again whatever turn asks for it; `call_id` and
            `turn_id` may then be missing.
        occurrence: 2 for a second call that the model gave the same id in this turn, 3 for a third. Only the calls of
            one submission are counted by themselves: a call that comes alone under the same id is a repeat.
        ordered: run it after the calls of its turn that were submitted with ``ordered=True`` before it.
        kind: ``custom`` where the arguments are the input text of a custom tool; ``function`` by default.
        timeout: seconds to wait for the outcome; None, the default, waits until there is one.
    """

    intent: str | None
    occurrence: int
    ordered: bool
    kind: CallKind
    timeout: float | None


def single_call(
    terms: SubmissionTerms, call: tuple[str, Any], call_id: str | None, turn_id: str | None, options: CallOptions
) -> Submitting:
    """The submission of one call, a pair of name and arguments.

    Raises:
        CallIdMissing: neither a call id nor an intent key says which call it is.
        TurnIdMissing: it has no turn id and no intent key.
        ValueError: the occurrence is no number from 1 on, or is given with an intent key.
    """
    name, arguments = call
    intent, occurrence = options.get("intent"), options.get("occurrence", 1)
    if type(occurrence) is not int or occurrence < 1:
        raise ValueError(f"occurrence is a number from 1 on, not {occurrence!r}")
    if intent is None and not call_id:
        raise CallIdMissing(
            f"the call of {name!r} has no id, so that a repeat of it could not be told from a new call; give call_id, "
            "the id that the model's response has for it, or intent, your own key of the action"
        )
    if intent is not None and occurrence > 1:
        raise ValueError("an intent key names one action: give another key, not an occurrence")
    named = turn_id if turn_id or intent is None else f"intent/{intent}"
    submitted = (asked(ToolCall(name, arguments, call_id, options.get("kind", "function"))),)
    ordered = options.get("ordered", False)
    return Submitting(terms, usable_turn_id(named, None), submitted, intent, ordered, occurrence=occurrence)
