"""Reads OpenAI Responses: events about the items of a response, and the terminal events.

Decides which events count, in which order they may come, and which terminal events let calls run.
Must not know bytes or argument JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from ...turns.assembly import AssembledCalls
from ...turns.reader import DialectReader, Frame, mapping, mappings
from ...turns.turn import CallKind, Dialect, TurnOutcome
from ...turns.turn_builder import OpenCall, OpenTurn
from ...wire.frames import error_in
from .calls import Items, Slot, arguments_of, kind_of

# Terminal events: nothing may follow them.
TERMINALS: dict[str, TurnOutcome] = {
    "response.completed": "completed",
    "response.incomplete": "truncated",
    "response.failed": "failed",
    "response.cancelled": "aborted",
    "response.canceled": "aborted",
}


class ResponsesReader(DialectReader):
    dialect: ClassVar[Dialect] = "openai-responses"

    def __init__(self, turn: OpenTurn) -> None:
        super().__init__(turn)
        self._items = Items(turn)
        self._seen: set[int] = set()  # sequence numbers
        self._with_text: set[tuple[object, ...]] = set()  # parts and items whose text was added already
        self._refused = False

    def read(self, kind: str, frame: Frame) -> None:
        number = frame.get("sequence_number")
        if type(number) is int:
            if number in self._seen:
                return  # a repeated event
            self._seen.add(number)
        handler = self._HANDLERS.get(kind)
        if self.turn.released and (handler or kind in TERMINALS):
            self.turn.violate(f"{kind} after the end of the response")
        if handler:
            handler(self, frame)
        elif kind.startswith("response."):
            response = mapping(frame.get("response"))
            self.turn.identify(response.get("id"))
            if error := error_in(response):
                self.turn.fail(error)
            if kind in TERMINALS:
                self._terminal(kind, response)

    def body(self, document: Frame) -> None:
        self.turn.identify(document.get("id"))
        kind = f"response.{document.get('status')}"
        self._terminal(kind if kind in TERMINALS else "response.completed", document)

    def close(self) -> None:
        if self._refused and self.turn.endings:
            self.turn.end("filtered", "refusal")
        for slot in self._items.calls():
            if damage := slot.agree():
                self.turn.violate(damage)

    def contradiction(self, calls: int) -> str | None:
        odd = next((slot.status for slot in self._items.calls() if slot.status is not None), None)
        return f"a call whose item has the status {odd}" if odd is not None else None

    def assistant(self, assembled: AssembledCalls) -> list[Frame]:
        items = []
        for item, slot in self._items.complete():
            if slot is None or slot.call is None:
                items.append(item)
            elif slot.call in assembled:
                items.append(slot.echo(assembled.text_of(slot.call)))
        return items

    def shown(self) -> list[OpenCall]:
        return [slot.call for _, slot in self._items.complete() if slot is not None and slot.call is not None]

    def _item_added(self, frame: Frame) -> None:
        slot = self._described(frame)
        if slot is None:
            return
        if slot.announced:
            self.turn.violate("two announcements for one output_index")
        slot.announced = True
        if slot.call is not None:
            slot.fragment(arguments_of(slot.item))

    def _item_done(self, frame: Frame) -> None:
        slot = self._described(frame)
        if slot is None:
            return
        if slot.call is not None:
            slot.final_item(slot.item)
            slot.call.finish()
        else:
            self._message(frame.get("output_index"), slot.item)

    def _described(self, frame: Frame) -> Slot | None:
        """The slot of the item in this frame; opened where it is new."""
        index = self._index(frame)
        if index is None:
            return None
        item = self.object_in(frame, "item")
        kind = kind_of(item)
        slot = self._items.streamed.get(index) or self._items.open(index, kind)
        if (slot.call.kind if slot.call else None) != kind:
            self.turn.violate("an item changed its type")
            return None
        slot.describe(self.turn, item)
        return slot

    def _index(self, frame: Frame) -> int | None:
        index = frame.get("output_index")
        if type(index) is int:
            return index
        self.turn.violate("an item without its output_index")
        return None

    def _fragment(self, frame: Frame, kind: CallKind) -> None:
        slot = self._call_slot(frame, kind)
        if slot is not None:
            slot.fragment(frame.get("delta"))

    def _final(self, frame: Frame, kind: CallKind, member: str) -> None:
        slot = self._call_slot(frame, kind)
        if slot is not None and slot.call is not None:
            slot.call.rename(frame.get("name"))
            slot.final(frame.get(member))

    def _call_slot(self, frame: Frame, kind: CallKind) -> Slot | None:
        """The slot for a fragment or a final text, which may come before its item; None for other items."""
        index = self._index(frame)
        if index is None:
            return None
        slot = self._items.streamed.get(index) or self._items.open(index, kind)
        if slot.call is None:
            return None
        if slot.call.kind != kind:
            self.turn.violate("a fragment of another kind of call")
            return None
        return slot

    def _terminal(self, kind: str, response: Frame) -> None:
        self.turn.released = True
        self.turn.add_usage(response.get("usage"))
        self.turn.end(*_ending(kind, response))
        for position, item in enumerate(mappings(response.get("output"))):
            self._items.list_item(position, item)
            self._refused |= _has_refusal(item)
        if not self.turn.texts:  # else the final list repeats the streamed text
            for item in mappings(response.get("output")):
                self._add_text(item)

    def _text_delta(self, frame: Frame) -> None:
        if (place := _part_place(frame)) not in self._with_text:
            self._with_text |= {_item_place(frame), place}
        self.turn.add_text(frame.get("delta"))

    def _text_done(self, frame: Frame) -> None:
        if _part_place(frame) not in self._with_text:
            self._with_text |= {_item_place(frame), _part_place(frame)}
            self.turn.add_text(frame.get("text"))

    def _message(self, index: object, item: Frame) -> None:
        self._refused |= _has_refusal(item)
        if (index,) not in self._with_text:
            self._with_text.add((index,))
            self._add_text(item)

    def _add_text(self, item: Frame) -> None:
        if item.get("type") == "message":
            for part in mappings(item.get("content")):
                if part.get("type") == "output_text":
                    self.turn.add_text(part.get("text"))

    def _part(self, frame: Frame) -> None:
        if mapping(frame.get("part")).get("type") == "refusal":
            self._refused = True

    def _refusal(self, frame: Frame) -> None:
        self._refused = True

    _HANDLERS: ClassVar[dict[str, Callable[[ResponsesReader, Frame], None]]] = {
        "response.output_text.delta": _text_delta,
        "response.output_text.done": _text_done,
        "response.function_call_arguments.delta": lambda self, frame: self._fragment(frame, "function"),
        "response.custom_tool_call_input.delta": lambda self, frame: self._fragment(frame, "custom"),
        "response.function_call_arguments.done": lambda self, frame: self._final(frame, "function", "arguments"),
        "response.custom_tool_call_input.done": lambda self, frame: self._final(frame, "custom", "input"),
        "response.output_item.added": _item_added,
        "response.output_item.done": _item_done,
        "response.content_part.added": _part,
        "response.content_part.done": _part,
        "response.refusal.delta": _refusal,
        "response.refusal.done": _refusal,
    }
    kinds = frozenset({*_HANDLERS, *TERMINALS, "response.created", "response.queued", "response.in_progress"})


def _item_place(frame: Frame) -> tuple[object, ...]:
    return (_number(frame.get("output_index")),)


def _part_place(frame: Frame) -> tuple[object, ...]:
    return _number(frame.get("output_index")), _number(frame.get("content_index"))


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _has_refusal(item: Frame) -> bool:
    return item.get("type") == "message" and any(
        part.get("type") == "refusal" for part in mappings(item.get("content"))
    )


def _ending(kind: str, response: Frame) -> tuple[TurnOutcome, str]:
    status = response.get("status")
    reason = mapping(response.get("incomplete_details")).get("reason")
    match TERMINALS[kind]:
        case "completed" if status != "completed":
            return "withheld", f"{kind} with status {status}"
        case "completed" if reason is not None:
            return "withheld", f"{kind} that is incomplete: {reason}"
        case "truncated" if reason == "content_filter":
            return "filtered", "content_filter"
        case "truncated":
            return "truncated", str(reason or "incomplete")
        case outcome:
            return outcome, kind.removeprefix("response.")


def detect(kind: str, frame: Frame) -> bool:
    """Whether this frame or whole response can only be of this dialect."""
    return kind.startswith("response.") or frame.get("object") == "response"
