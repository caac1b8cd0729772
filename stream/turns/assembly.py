"""Assembles the calls of a turn that ended properly: each call is accepted, refused, or a repeated event.

Decides which calls are repetitions of one event, and the positions. Must not know dialects or stop reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..wire.arguments import DecodedArguments, Unusable, decode_free_text, decode_pieces, json_text
from ..wire.limits import TurnLimits
from .turn import RejectedCall, ToolCall
from .turn_builder import OpenCall

# Decoded calls by kind, id, name and the reason to refuse them.
_Seen = dict[tuple[str, str, str, str | None], list[DecodedArguments]]


@dataclass(slots=True)
class AssembledCalls:
    """The calls of a turn, decoded.

    Attributes:
        calls, rejected: in order of first appearance.
        decoded, positions: by ``OpenCall.number``; a repeated event has no entry.
        damage: why the turn as a whole is malformed; None when it is not.
    """

    calls: list[ToolCall] = field(default_factory=list)
    rejected: list[RejectedCall] = field(default_factory=list)
    decoded: dict[int, DecodedArguments] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)
    damage: str | None = None

    def __len__(self) -> int:
        return len(self.calls) + len(self.rejected)

    def __contains__(self, call: OpenCall) -> bool:
        return call.number in self.decoded

    def text_of(self, call: OpenCall) -> str:
        """The argument text for the echo: ``{}`` for empty and refused arguments, the input text of a custom tool."""
        decoded = self.decoded[call.number]
        if call.kind == "custom":
            return decoded.text if decoded.reason is None else ""
        return (decoded.text if decoded.reason is None else "") or "{}"

    def value_of(self, call: OpenCall) -> object:
        """The arguments for the echo, as a value."""
        value = self.decoded[call.number].value
        return {} if value is None else value


def assemble(calls: Iterable[OpenCall], turn_id: str | None, limits: TurnLimits) -> AssembledCalls:
    """Decode the calls of a turn that ended properly, and give each its position."""
    assembled = AssembledCalls()
    seen: _Seen = {}
    for call in calls:
        try:
            decoded = _decode(call, limits)
        except Unusable as damage:
            assembled.damage = str(damage)
            return assembled
        if not _is_repeat(call, decoded, seen):
            _deliver(assembled, call, decoded, turn_id)
    return assembled


def _decode(call: OpenCall, limits: TurnLimits) -> DecodedArguments:
    if not call.name:
        raise Unusable("a call without a name")
    if call.too_large:
        return DecodedArguments(None, "", "too_large")
    if call.opener is not None and len(call.pieces) > 1:
        raise Unusable("a call has arguments in its opening and fragments after it")
    if call.kind == "custom":
        return decode_free_text(call.pieces)
    return decode_pieces(call.pieces, limits)


def _is_repeat(call: OpenCall, decoded: DecodedArguments, seen: _Seen) -> bool:
    """Whether an earlier call has the same id, name and arguments. A call without an id is never a repetition."""
    if not call.call_id:
        return False
    alike = seen.setdefault((call.kind or "function", call.call_id, call.name, decoded.reason), [])
    for other in alike:
        if _normal_form(decoded) == _normal_form(other):
            return True
    alike.append(decoded)
    return False


def _normal_form(decoded: DecodedArguments) -> str:
    """The arguments as a text that does not depend on whitespace and key order."""
    return decoded.text if decoded.reason else json_text(decoded.value, sorted_members=True) or decoded.text


def _deliver(assembled: AssembledCalls, call: OpenCall, decoded: DecodedArguments, turn_id: str | None) -> None:
    position = assembled.positions[call.number] = len(assembled)
    assembled.decoded[call.number] = decoded
    kind = call.kind or "function"
    if decoded.value is None:
        assert decoded.reason is not None
        assembled.rejected.append(
            RejectedCall(call.name, call.call_id, decoded.reason, position, decoded.text, turn_id, call.echo, kind)
        )
    else:
        assembled.calls.append(ToolCall(call.name, decoded.value, call.call_id, kind, position, turn_id, call.echo))


def undelivered(
    calls: Iterable[OpenCall], assembled: AssembledCalls | None, outcome: str
) -> Iterator[tuple[OpenCall, str]]:
    """The opened calls that are not delivered, each with the reason."""
    for call in calls:
        decoded = assembled.decoded.get(call.number) if assembled else None
        if decoded is None:
            yield call, "duplicate" if assembled else outcome
        elif decoded.reason:
            yield call, decoded.reason
