"""The way back to a provider: the assistant message to append, and one result for each call of the turn after it.

Decides order, pairing and completeness, the same for all dialects; shapes are the reply modules'. Both sides compute
ids from the same things (dialect, turn id, the ids of the turn, what admission chose in place of ids that an earlier
turn used), so they agree without talking to each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...store.model.identity import references
from ...store.model.outcomes import Outcome
from ..dialects.table import spec_of
from ..replies.answers import answer, sendable
from ..replies.call_ids import IdForm, outbound_ids
from ..replies.protocol import Message, WrittenCall
from ..turns.turn import Dialect, RejectedCall, ToolCall, TurnResult


def replies(
    outcomes: Iterable[Outcome],
    dialect: Dialect,
    *,
    turn_id: str | None,
    came_in: Dialect | None = None,
    ids: IdForm = "paired",
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
        ids: which ids go out; the same as for ``history()``.

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
    came, chosen = [outcome.call_id for outcome in ordered], [outcome.reply_id for outcome in ordered]
    sent = outbound_ids(module.IDS.of(ids), turn_id, came, chosen)
    echoed = came_in in (None, dialect)
    answers = [answer(outcome, call_id, echoed=echoed) for outcome, call_id in zip(ordered, sent, strict=True)]
    return [sendable(message) for message in module.results(answers)]


def history(
    turn: TurnResult,
    dialect: Dialect,
    *,
    turn_id: str | None = None,
    outcomes: Iterable[Outcome] = (),
    ids: IdForm = "paired",
) -> list[Message]:
    """What to append to the history before the results: the assistant's own message(s).

    The provider's items come back as they were (thoughts and signatures too); a turn of another dialect is written
    anew from its text and calls, since signatures are worth nothing elsewhere. Arguments are always valid: ``{}`` for
    empty ones and for those of a rejected call, as an invalid text would make every later request fail.

    Args:
        dialect: the provider that is asked next.
        turn_id: the id the turn was submitted under, where it was not the turn's own.
        outcomes: those of the turn's calls, of all its submissions. They say which ids an earlier turn of the scope
            used; without them each id counts as new.
        ids: which ids go out; the same as for ``replies()``.

    Returns:
        Empty unless the turn is ``completed`` or ``paused``: any other turn leaves the history as it was.

    Raises:
        UnknownDialect: no such dialect.
    """
    own_id = turn.turn_id if turn_id is None else turn_id
    return assistant_messages(dialect, turn, own_id, chosen_ids(turn, outcomes), ids)


def assistant_messages(
    dialect: Dialect, turn: TurnResult, turn_id: str | None, reply_ids: Sequence[str | None], ids: IdForm = "paired"
) -> list[Message]:
    """The same, with what `chosen_ids` said earlier; see `history`."""
    module = spec_of(dialect).replies
    if turn.outcome not in ("completed", "paused"):
        return []
    calls = _in_order(turn)
    sent = outbound_ids(module.IDS.of(ids), turn_id, [call.call_id for call in calls], reply_ids)
    if turn.dialect == dialect:
        messages = module.echo(turn.assistant, [sent[position] for position in turn.order] or sent)
    else:
        messages = module.write(turn.text, _written(calls, sent))
    return [sendable(message) for message in messages]


def chosen_ids(turn: TurnResult, outcomes: Iterable[Outcome]) -> tuple[str | None, ...]:
    """What admission chose in the place of each call's id, in call order; None where the id goes out as it came. Equal
    ids of a turn are told apart by their order."""
    ordered = sorted(outcomes, key=lambda outcome: outcome.position)
    refs = references([outcome.call_id for outcome in ordered])
    found = dict(zip(refs, [outcome.reply_id for outcome in ordered], strict=True))
    return tuple([found.get(ref) for ref in references([call.call_id for call in _in_order(turn)])])


def _in_order(turn: TurnResult) -> list[ToolCall | RejectedCall]:
    return sorted((*turn.calls, *turn.rejected), key=lambda call: call.position)


def _written(calls: Sequence[ToolCall | RejectedCall], ids: Sequence[str | None]) -> list[WrittenCall]:
    return [_write(call, call_id) for call, call_id in zip(calls, ids, strict=True)]


def _write(call: ToolCall | RejectedCall, call_id: str | None) -> WrittenCall:
    if isinstance(call, RejectedCall):
        return WrittenCall(call_id, call.name, "" if call.kind == "custom" else {}, call.kind)
    return WrittenCall(call_id, call.name, call.arguments, call.kind)
