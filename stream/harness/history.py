"""The way back to a provider: the assistant message to append, and one result for each call of the turn after it.

Decides order, pairing and completeness, the same for all dialects; shapes are the reply modules'. Both sides compute
ids from the same three things (dialect, turn id, the ids of the turn), so they agree without talking to each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...store.model.outcomes import Outcome
from ..dialects.table import spec_of
from ..replies.answers import answer, sendable
from ..replies.call_ids import outbound_ids
from ..replies.protocol import Message, WrittenCall
from ..turns.turn import RejectedCall, ToolCall, TurnResult


def replies(
    dialect: str, outcomes: Iterable[Outcome], *, turn_id: str | None, came_in: str | None = None
) -> list[Message]:
    """The provider-shaped results of one turn: exactly one per outcome, in call order, whatever order they came in.

    An open call is answered, too: a provider refuses a history with an unanswered call. Its words say that the result
    is still to come; the later outcome must never be sent as a second result.

    Args:
        dialect: the provider that is asked next, not necessarily the one that made the calls.
        outcomes: one for each call of the turn, rejected ones included; those of several submissions, which all count
            from 0, are taken in the order given.
        turn_id: the one the turn was submitted under; stand-ins for missing and refused ids are made from it.
        came_in: the dialect that made the calls, where it is another one; its echo fields mean nothing here.

    Returns:
        Messages, contents or input items, to be appended after ``history()``; empty where the turn had no calls.

    Raises:
        UnknownDialect: no such dialect.
        ValueError: two outcomes for one call.
    """
    module = spec_of(dialect).replies
    given = list(outcomes)
    if len({(outcome.position, outcome.key) for outcome in given}) < len(given):
        raise ValueError("two outcomes for one call: a call has exactly one result")
    ordered = sorted(given, key=lambda outcome: outcome.position)
    if len({outcome.position for outcome in ordered}) < len(ordered):
        ordered = given
    ids = outbound_ids(module.IDS, turn_id, [outcome.call_id for outcome in ordered])
    echoed = came_in in (None, dialect)
    answers = [answer(outcome, call_id, echoed=echoed) for outcome, call_id in zip(ordered, ids, strict=True)]
    return [sendable(message) for message in module.results(answers)]


def history(dialect: str, turn: TurnResult, *, turn_id: str | None = None) -> list[Message]:
    """What to append to the history before the results: the assistant's own message(s).

    The provider's items come back as they were (thoughts and signatures too); a turn of another dialect is written
    anew from its text and calls, since signatures are worth nothing elsewhere. Arguments are always valid: ``{}`` for
    empty ones and for those of a rejected call, as an invalid text would make every later request fail.

    Args:
        dialect: the provider that is asked next.
        turn_id: the id the turn was submitted under, where it was not the turn's own.

    Returns:
        Empty unless the turn is ``completed`` or ``paused``: any other turn leaves the history as it was.

    Raises:
        UnknownDialect: no such dialect.
    """
    module = spec_of(dialect).replies
    if turn.outcome not in ("completed", "paused"):
        return []
    calls: list[ToolCall | RejectedCall] = sorted((*turn.calls, *turn.rejected), key=lambda call: call.position)
    ids = outbound_ids(module.IDS, turn.turn_id if turn_id is None else turn_id, [call.call_id for call in calls])
    if turn.dialect == dialect:
        messages = module.echo(turn.assistant, [ids[position] for position in turn.order] or ids)
    else:
        messages = module.write(turn.text, _written(calls, ids))
    return [sendable(message) for message in messages]


def _written(calls: Sequence[ToolCall | RejectedCall], ids: Sequence[str | None]) -> list[WrittenCall]:
    return [_write(call, call_id) for call, call_id in zip(calls, ids, strict=True)]


def _write(call: ToolCall | RejectedCall, call_id: str | None) -> WrittenCall:
    if isinstance(call, RejectedCall):
        return WrittenCall(call_id, call.name, "" if call.kind == "custom" else {}, call.kind)
    return WrittenCall(call_id, call.name, call.arguments, call.kind)
