"""From the calls of a turn that ended properly to what is handed over: each call whole, refused, or listed before.

Decides which calls are one event that came twice, and positions. Must not know dialects or terminals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..wire.arguments import Judged, Unusable, json_text, judge_free_text, judge_pieces
from ..wire.limits import Limits
from .turn import RejectedCall, ToolCall
from .turn_builder import OpenCall

# Calls that were judged, by kind, id, name and the reason to refuse them.
_Seen = dict[tuple[str, str, str, str | None], list[Judged]]


@dataclass(slots=True)
class AssembledCalls:
    """The calls of a turn, judged.

    Attributes:
        calls, rejected: in order of first appearance.
        judged, positions: by ``OpenCall.number``; a repeated event has no entry.
        damage: why the turn as a whole is malformed; None when it is not.
    """

    calls: list[ToolCall] = field(default_factory=list)
    rejected: list[RejectedCall] = field(default_factory=list)
    judged: dict[int, Judged] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)
    damage: str | None = None

    def __len__(self) -> int:
        return len(self.calls) + len(self.rejected)

    def __contains__(self, call: OpenCall) -> bool:
        return call.number in self.judged

    def text_of(self, call: OpenCall) -> str:
        """Argument text that is valid to send back: ``{}`` for empty and refused ones, the input of a custom tool."""
        judged = self.judged[call.number]
        if call.kind == "custom":
            return judged.text if judged.reason is None else ""
        return (judged.text if judged.reason is None else "") or "{}"

    def value_of(self, call: OpenCall) -> object:
        """The same as a value."""
        value = self.judged[call.number].value
        return {} if value is None else value


def settle(calls: Iterable[OpenCall], turn_id: str | None, limits: Limits) -> AssembledCalls:
    """Judge the calls of a turn that ended properly."""
    settled = AssembledCalls()
    seen: _Seen = {}
    for call in calls:
        try:
            judged = _judge(call, limits)
        except Unusable as damage:
            settled.damage = str(damage)
            return settled
        if not _is_repeat(call, judged, seen):
            _deliver(settled, call, judged, turn_id)
    return settled


def _judge(call: OpenCall, limits: Limits) -> Judged:
    if not call.name:
        raise Unusable("a call without a name")
    if call.too_large:
        return Judged(None, "", "too_large")
    if call.opener is not None and len(call.pieces) > 1:
        raise Unusable("a call has arguments in its opening and fragments after it")
    if call.kind == "custom":
        return judge_free_text(call.pieces)
    return judge_pieces(call.pieces, limits)


def _is_repeat(call: OpenCall, judged: Judged, seen: _Seen) -> bool:
    """Whether this is one event that came twice: id, name and arguments all equal. Without an id it never is."""
    if not call.call_id:
        return False
    alike = seen.setdefault((call.kind or "function", call.call_id, call.name, judged.reason), [])
    for other in alike:
        if _meant(judged) == _meant(other):
            return True
    alike.append(judged)
    return False


def _meant(judged: Judged) -> str:
    """The arguments as one text, whatever their blanks and the order of their members."""
    return judged.text if judged.reason else json_text(judged.value, sorted_members=True) or judged.text


def _deliver(settled: AssembledCalls, call: OpenCall, judged: Judged, turn_id: str | None) -> None:
    position = settled.positions[call.number] = len(settled)
    settled.judged[call.number] = judged
    kind = call.kind or "function"
    if judged.value is None:
        assert judged.reason is not None
        settled.rejected.append(
            RejectedCall(call.name, call.call_id, judged.reason, position, judged.text, turn_id, call.echo, kind)
        )
    else:
        settled.calls.append(ToolCall(call.name, judged.value, call.call_id, kind, position, turn_id, call.echo))


def undelivered(
    calls: Iterable[OpenCall], settled: AssembledCalls | None, outcome: str
) -> Iterator[tuple[OpenCall, str]]:
    """The opened calls that are not handed over, with the reason of each."""
    for call in calls:
        judged = settled.judged.get(call.number) if settled else None
        if judged is None:
            yield call, "duplicate" if settled else outcome
        elif judged.reason:
            yield call, judged.reason
