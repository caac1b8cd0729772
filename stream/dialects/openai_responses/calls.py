"""The items of one OpenAI response: the streamed ones by ``output_index``, and those of the final output list.

Decides which item of the final list is which streamed one, and what a call's final arguments are. Must not know events.
"""

from __future__ import annotations

from typing import Any

from ...turns.reader import Frame, without
from ...turns.turn import CallKind
from ...turns.turn_builder import OpenCall, OpenTurn
from ...wire.arguments import json_text

# Item type -> (kind of call, the member that holds its arguments). Other items are not calls for the harness.
OURS: dict[str, tuple[CallKind, str]] = {
    "function_call": ("function", "arguments"),
    "custom_tool_call": ("custom", "input"),
}
# Statuses of a finished item that let its call run. Items of hosted programs finish with `in_progress`.
_RUNNABLE = (None, "completed", "in_progress")


def kind_of(item: Frame) -> CallKind | None:
    """The kind of call of an item, from its type alone; None where it is not a call for the harness."""
    tag = item.get("type")
    return OURS[tag][0] if isinstance(tag, str) and tag in OURS else None


def arguments_of(item: Frame) -> object:
    """The argument text of an item that is a call."""
    return item.get(OURS[item["type"]][1])


class Slot:
    """One output item: its latest form, and its call where it is one for the harness.

    Attributes:
        finals: every final argument text that came, empty ones included.
        status: the status of the finished item, where it forbids to run the call.
        listed: the item was found in the final output list.
    """

    __slots__ = ("announced", "call", "finals", "item", "listed", "status")

    def __init__(self, call: OpenCall | None) -> None:
        self.call = call
        self.item: Frame = {}
        self.announced = False
        self.finals: list[Any] = []
        self.status: object = None
        self.listed = False

    def echo(self, text: str) -> Frame:
        """The call as an item to send back; it is built here where the stream had no item."""
        assert self.call is not None
        tag = next(tag for tag, (kind, _) in OURS.items() if kind == self.call.kind)
        item = self.item or {"call_id": self.call.call_id, "name": self.call.name}
        return {**item, "type": tag, OURS[tag][1]: text}

    def describe(self, turn: OpenTurn, item: Frame) -> None:
        """Set id, name and echo of the call from an item."""
        self.item = item
        if self.call is None:
            return
        if self.call.call_id and item.get("call_id") not in (None, "", self.call.call_id):
            turn.violate("a call changed its call_id")
        self.call.identify(item.get("call_id"))
        self.call.rename(item.get("name"))
        self.call.echo |= without(item, "type", "id", "call_id", "name", "arguments", "input", "status")

    def fragment(self, piece: object) -> None:
        """Add a fragment; one after a final text is ignored."""
        if self.call is not None and not any(self.finals):
            self.call.add(piece)

    def final(self, piece: object) -> None:
        """Add a final text; the first one makes drafts where there were no fragments."""
        assert self.call is not None
        self.finals.append(piece)
        if not self.call.pieces:
            self.call.add(piece)

    def final_item(self, item: Frame) -> None:
        self.final(arguments_of(item))
        if item.get("status") not in _RUNNABLE:
            self.status = item.get("status")

    def agree(self) -> str | None:
        """Replace the fragments by the final text. Returns how the final texts contradict each other, or None."""
        assert self.call is not None
        if not self.finals:
            return "a call without its final arguments"
        told = [final for final in self.finals if final not in (None, "")]
        if len({_as_text(final) for final in told}) > 1:
            return "two final texts of one call differ"
        if told:
            self.call.replace(told[0])
        return None


def _call_id(slot: Slot | None) -> str | None:
    return slot.call.call_id if slot and slot.call else None


def _name(slot: Slot) -> str | None:
    return slot.call.name if slot.call else None


def _as_text(final: Any) -> str:
    return final if isinstance(final, str) else json_text(final)


class Items:
    """All items of one response: the streamed ones by index, and calls that are in the final list only."""

    def __init__(self, turn: OpenTurn) -> None:
        self._turn = turn
        self.streamed: dict[int, Slot] = {}
        self.unannounced: list[Slot] = []
        self.output: list[tuple[Frame, Slot | None]] = []

    def open(self, index: int, kind: CallKind | None) -> Slot:
        slot = self.streamed[index] = Slot(self._turn.open_call(kind) if kind else None)
        return slot

    def calls(self) -> list[Slot]:
        return [slot for slot in (*self.streamed.values(), *self.unannounced) if slot.call is not None]

    def list_item(self, position: int, item: Frame) -> None:
        """Read one item of the final output list. Items may be missing in the list or in the stream."""
        kind = kind_of(item)
        if kind is None:
            self.output.append((item, None))
            return
        slot = self._find(position, item)
        if slot is None:
            if any(_call_id(slot) == item.get("call_id") for slot in self.streamed.values() if self._other(slot, kind)):
                self._turn.violate("a call changed its type")
            slot = Slot(self._turn.open_call(kind))
            self.unannounced.append(slot)
        slot.listed = True
        slot.describe(self._turn, item)
        slot.final_item(item)
        self.output.append((item, slot))

    def _find(self, position: int, item: Frame) -> Slot | None:
        """The streamed call of a listed item: by call_id; among equal ids by position, then by arguments."""
        kind = kind_of(item)
        free = [slot for slot in self.streamed.values() if slot.call and slot.call.kind == kind and not slot.listed]
        call_id = item.get("call_id") or None
        same_id = [slot for slot in free if _call_id(slot) == call_id]
        in_place = self.streamed.get(position)
        if in_place in same_id or (in_place in free and not (call_id and _call_id(in_place))):
            return in_place
        if not same_id and any(not (call_id and _call_id(slot)) for slot in free):
            self._turn.violate("a call of the final list that may be one of several streamed ones")
        same = [slot for slot in same_id if arguments_of(item) in slot.finals and _name(slot) == item.get("name")]
        return next(iter(same or same_id), None)

    def _other(self, slot: Slot, kind: CallKind) -> bool:
        return slot.call is not None and slot.call.kind != kind

    def complete(self) -> list[tuple[Frame, Slot | None]]:
        """Every item once, in the order of the response: the final list where it is complete."""
        lacks_a_call = any(slot.call and not slot.listed for slot in self.streamed.values())
        if len(self.output) >= len(self.streamed) and not lacks_a_call:
            return self.output
        streamed = [(slot.item, slot) for _, slot in sorted(self.streamed.items())]
        return [*streamed, *((slot.item, slot) for slot in self.unannounced)]
