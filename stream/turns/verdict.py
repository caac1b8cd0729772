"""The verdict on a turn: decides its one outcome from everything that its frames said.

Decides which outcome wins where several apply. Must not know dialects beyond the interface in ``reader.py``.
"""

from __future__ import annotations

from .assembly import AssembledCalls, assemble, undelivered
from .drafts import CallDropped, Draft, TurnEnded
from .reader import DialectReader
from .turn import TurnOutcome, TurnResult
from .turn_builder import OpenTurn


def decide_turn(reader: DialectReader, *, broken: bool, bytes_seen: int = 0) -> TurnResult:
    """The result of a turn after its end; ``broken``: the transport did not end cleanly."""
    turn = reader.turn
    if turn.released or not broken:
        reader.close()
    assembled: AssembledCalls | None = None
    outcome, reason = _before_the_calls(turn, broken)
    if outcome == "completed":
        assembled = assemble(reader.counted(), turn.turn_id, turn.limits)
        outcome, reason = _with_the_calls(reader, assembled)
    delivered = assembled if assembled is not None and outcome == "completed" else None
    _close_drafts(turn, delivered, outcome)
    reason = _with_hint(reader, reason, is_empty=outcome == "completed" and not turn.calls and not turn.texts)
    return TurnResult(
        dialect=reader.dialect,
        outcome=outcome,
        calls=tuple(delivered.calls) if delivered else (),
        rejected=tuple(delivered.rejected) if delivered else (),
        text=turn.text,
        turn_id=turn.turn_id,
        assistant=_assistant(reader, delivered, outcome),
        stop=turn.endings[-1][1] if turn.endings else None,
        error=turn.error,
        usage=turn.usage,
        diagnostics=tuple(dict.fromkeys([*([reason] if reason else []), *turn.violations, *turn.notes])),
        limit=turn.limit,
        bytes_seen=bytes_seen,
        tokens_seen=_tokens(turn),
        order=_order(reader, delivered) if delivered else (),
    )


def _before_the_calls(turn: OpenTurn, broken: bool) -> tuple[TurnOutcome, str | None]:
    if turn.error is not None:
        return "failed", f"the provider reported an error: {turn.error.code or 'without a code'}"
    if turn.bad_utf8:
        return "malformed", "bytes that are not UTF-8"
    if turn.unreadable:
        return "malformed", turn.unreadable
    if turn.limit:
        return "malformed", f"the limit {turn.limit} was exceeded"
    if broken and not turn.released:
        return "aborted", "the transport broke before the turn was released"
    for outcome, word in turn.endings:
        if outcome != "completed":
            return outcome, f"the turn ended with {word!r}"
    if not turn.endings:
        return "truncated", "the stream ended without a stop reason"
    if turn.max_tokens is not None and (_tokens(turn) or 0) >= turn.max_tokens:
        return "truncated", f"the turn used up its {turn.max_tokens} tokens"
    return "completed", None


def _with_hint(reader: DialectReader, reason: str | None, *, is_empty: bool) -> str | None:
    """The reason with a hint at the dialect that the bytes look like, where they gave nothing under the given one."""
    if reader.turn.looks_like is None or (reason is None and not is_empty):
        return reason
    hint = f"read as {reader.dialect}, but it looks like {reader.turn.looks_like}; give that in its place"
    return f"{reason} ({hint})" if reason else hint


def _with_the_calls(reader: DialectReader, assembled: AssembledCalls) -> tuple[TurnOutcome, str | None]:
    if reader.turn.violations:
        return "malformed", reader.turn.violations[0]
    if assembled.damage:
        return "malformed", assembled.damage
    if contradiction := reader.contradiction(len(assembled)):
        return "withheld", contradiction
    return "completed", None


def _assistant(reader: DialectReader, delivered: AssembledCalls | None, outcome: str) -> tuple[dict[str, object], ...]:
    if delivered is not None:
        return tuple(reader.assistant(delivered))
    return tuple(reader.unchanged()) if outcome == "paused" else ()


def _order(reader: DialectReader, delivered: AssembledCalls) -> tuple[int, ...]:
    if len(delivered) < 2:
        return ()
    order = tuple(delivered.positions[call.number] for call in reader.shown() if call in delivered)
    return () if order == tuple(range(len(order))) else order


def _close_drafts(turn: OpenTurn, delivered: AssembledCalls | None, outcome: str) -> None:
    for call in turn.calls:
        if delivered is not None and call in delivered and delivered.decoded[call.number].reason is None:
            call.finish()
    for call, reason in undelivered(turn.calls, delivered, outcome):
        if call.shown:
            turn.drafts.add(CallDropped(call.number, call.name, call.call_id, reason))
    ended: Draft = TurnEnded(outcome)
    turn.drafts.add(ended)


def _tokens(turn: OpenTurn) -> int | None:
    usage = turn.usage or {}
    for name in turn.token_fields:
        count = usage.get(name)
        if isinstance(count, int):
            return count
    return None
