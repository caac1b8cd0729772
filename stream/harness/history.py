"""Builds what a harness sends back to a provider: the assistant message, and one result for each of its calls.

Decides order, matching and completeness for all dialects; the reply modules decide message forms. `history` and
`replies` compute call ids from the same values (dialect, turn id, the ids of the turn, and the ids that admission
chose), so the ids are equal.
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
    """The results of one turn in the provider's form: exactly one per outcome, in call order.

    An open call is answered as well, since a provider refuses a history with an unanswered call. The answer says that
    the result is still to come; the later outcome must never be sent as a second result.

    Args:
        dialect: of the next request; it may differ from the dialect of the turn.
        outcomes: one for each call of the turn, rejected ones included. Those of several submissions, which all count
            from 0, stay in the given order.
        turn_id: the id under which the turn was submitted; replacements for missing and refused call ids depend on it.
        came_in: the dialect of the turn where it differs; echo fields of its calls are then left out.
        ids: which ids are sent; the same as for ``history()``.

    Returns:
        Messages, contents or input items, to append after ``history()``; empty where the turn had no calls.

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
    """The assistant message(s) to append to the history before the results.

    The provider's items are sent back unchanged, with thoughts and signatures. A turn of another dialect is written
    from its text and calls, since its signatures are not valid elsewhere. Arguments are always valid: ``{}`` for empty
    and for rejected ones, because an invalid text would make every later request fail.

    Args:
        dialect: of the next request.
        turn_id: the id under which the turn was submitted, where it is not the turn's own.
        outcomes: of the turn's calls, of all its submissions. They say which call ids an earlier turn of the scope
            used; without them each id counts as new.
        ids: which ids are sent; the same as for ``replies()``.

    Returns:
        Empty unless the turn is ``completed`` or ``paused``: any other turn leaves the history unchanged.

    Raises:
        UnknownDialect: no such dialect.
    """
    own_id = turn.turn_id if turn_id is None else turn_id
    return assistant_messages(dialect, turn, own_id, chosen_ids(turn, outcomes), ids)


def assistant_messages(
    dialect: Dialect, turn: TurnResult, turn_id: str | None, reply_ids: Sequence[str | None], ids: IdForm = "paired"
) -> list[Message]:
    """As `history`, with the stored result of `chosen_ids`."""
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
    """The id that admission chose for each call, in call order; None where the call's own id is sent. Equal ids of a
    turn are distinguished by their order."""
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
