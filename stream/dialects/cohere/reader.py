"""Reads Cohere v2 chat: content and calls, each with an index of its own counter, and one finish reason.

Decides which finish reasons let calls run, and what is visible text. Must not know bytes or argument JSON. Source: the
types ``V2ChatStreamResponse`` and ``V2ChatResponse`` of Cohere's Python SDK.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from ...turns.assembly import AssembledCalls
from ...turns.reader import DialectReader, Frame, mapping, mappings, text
from ...turns.turn import Dialect, TurnOutcome
from ...turns.turn_builder import OpenCall, OpenTurn
from ...wire.frames import ProviderError, error_in

FINISH_REASONS: dict[str, TurnOutcome] = {
    "TOOL_CALL": "completed",
    "COMPLETE": "completed",
    "STOP_SEQUENCE": "completed",
    "MAX_TOKENS": "truncated",
    "ERROR": "failed",
    "TIMEOUT": "failed",
}
_SAID = ("text", "thinking")  # types of content, and the member of each that holds its words


class _IndexedCall:
    """A call under construction; ``call`` is None for a type of call that the harness does not run."""

    __slots__ = ("call", "closed")

    def __init__(self, call: OpenCall | None) -> None:
        self.call = call
        self.closed = False


class CohereReader(DialectReader):
    dialect: ClassVar[Dialect] = "cohere"

    def __init__(self, turn: OpenTurn) -> None:
        super().__init__(turn)
        self._started = False
        self._ended = False
        self._reason = ""
        self._slots: dict[int, _IndexedCall] = {}
        self._content: dict[object, tuple[str, list[str]]] = {}  # index -> (type, pieces)
        self._plan: list[str] = []

    def read(self, kind: str, frame: Frame) -> None:
        handler = self._HANDLERS.get(kind)
        if handler is None:
            return
        if self._ended:
            self.turn.violate(f"{kind} after message-end")
        handler(self, frame)

    def body(self, document: Frame) -> None:
        message = document.get("message")
        if isinstance(message, str):
            self.turn.fail(ProviderError(message=message))
        if message is None and (text(document.get("text")) or document.get("tool_calls")):
            self.turn.violate("an answer of version 1, not a chat turn of version 2")
        self.turn.identify(document.get("id"))
        whole = mapping(message)
        self._plan.append(text(whole.get("tool_plan")))
        content = whole.get("content")
        for index, item in enumerate([{"type": "text", "text": content}] if text(content) else mappings(content)):
            self._add(index, item)
        for entry in self.objects_in(whole, "tool_calls"):
            slot = self._open(entry)
            slot.closed = True
            if slot.call is not None:
                slot.call.finish()
        self._finish(document)

    def contradiction(self, calls: int) -> str | None:
        if calls == 0 and self._reason == "TOOL_CALL":
            return "finish reason TOOL_CALL without a call"
        if calls and self._reason != "TOOL_CALL":
            return f"finish reason {self._reason} together with calls"
        return None

    def assistant(self, assembled: AssembledCalls) -> list[Frame]:
        """The message, which may hold text or calls: text beside calls goes into the plan. Citations are left out."""
        calls = [_sent_back(call, assembled) for call in self.turn.calls if call in assembled]
        content = [(kind, "".join(pieces)) for _, (kind, pieces) in sorted(self._content.items(), key=_place)]
        kept = [(kind, words) for kind, words in content if words.strip() and not (calls and kind == "text")]
        plan = ["".join(self._plan), self.turn.text if calls else ""]
        message: Frame = {"role": "assistant"}
        if calls:
            message["tool_calls"] = calls
        if said := "\n".join(words for words in plan if words.strip()):
            message["tool_plan"] = said
        if kept:
            message["content"] = [{"type": kind, kind: words} for kind, words in kept]
        return [message] if calls or kept else []

    def _message_start(self, frame: Frame) -> None:
        if self._started:
            self.turn.violate("a second message-start")
        if self._message(frame).get("tool_calls"):
            self.turn.violate("a call inside message-start")
        self._started = True
        self.turn.identify(frame.get("id"))

    def _content_piece(self, frame: Frame) -> None:
        self._add(frame.get("index"), self.object_in(self._message(frame), "content"))

    def _add(self, index: object, item: Frame) -> None:
        """Add a piece of content. Its type is told by its start, and without one by its member."""
        index = index if type(index) is int else None
        if index not in self._content:
            told = item.get("type") or next((kind for kind in _SAID if kind in item), "")
            self._content[index] = (str(told), [])
        kind, pieces = self._content[index]
        words = text(item.get(kind)) if kind in _SAID else ""
        if words:
            pieces.append(words)
        if kind == "text":
            self.turn.add_text(words)

    def _plan_piece(self, frame: Frame) -> None:
        self._plan.append(text(self._message(frame).get("tool_plan")))

    def _call_start(self, frame: Frame) -> None:
        index = frame.get("index")
        if type(index) is not int:
            self.turn.violate("a call without its index")
        elif index in self._slots:
            self.turn.violate("a second call under one index")
        else:
            self._slots[index] = self._open(self._entry(frame))

    def _call_delta(self, frame: Frame) -> None:
        slot = self._open_slot(frame)
        if slot is not None and slot.call is not None:
            function = self.object_in(self._entry(frame), "function")
            slot.call.rename(function.get("name"))
            slot.call.add(function.get("arguments"))

    def _call_end(self, frame: Frame) -> None:
        slot = self._open_slot(frame)
        if slot is not None:
            slot.closed = True
            if slot.call is not None:
                slot.call.finish()

    def _message(self, frame: Frame) -> Frame:
        return self.object_in(self.object_in(frame, "delta"), "message")

    def _open_slot(self, frame: Frame) -> _IndexedCall | None:
        index = frame.get("index")
        slot = self._slots.get(index) if type(index) is int else None
        if slot is not None and not slot.closed:
            return slot
        self.turn.violate("a fragment or an end of a call before its start or after its end")
        return None

    def _entry(self, frame: Frame) -> Frame:
        """The call of an event: an object on the wire, a list of one in the documentation."""
        entry = self._message(frame).get("tool_calls")
        if isinstance(entry, list) and len(entry) == 1:
            entry = entry[0]
        if not isinstance(entry, dict):
            self.turn.violate("the call of an event is not an object")
        return mapping(entry)

    def _open(self, entry: Frame) -> _IndexedCall:
        if entry.get("type") not in (None, "", "function"):
            return _IndexedCall(None)
        function = self.object_in(entry, "function")
        call = self.turn.open_call()
        call.identify(entry.get("id"))
        call.rename(function.get("name"))
        call.add(function.get("arguments"))
        return _IndexedCall(call)

    def _message_end(self, frame: Frame) -> None:
        self._ended = self.turn.released = True
        self.turn.identify(frame.get("id"))
        if any(not slot.closed for slot in self._slots.values()):
            self.turn.violate("a call is still open at message-end")
        delta = mapping(frame.get("delta"))
        if error := error_in(delta):
            self.turn.fail(error)
        self._finish(delta)

    def _finish(self, told: Frame) -> None:
        if usage := mapping(told.get("usage")):
            tokens = {name: _whole(count) for name, count in mapping(usage.get("tokens")).items()}
            self.turn.add_usage({**usage, **tokens})
        reason = told.get("finish_reason")
        self._reason = "null" if reason is None else str(reason)
        self.turn.end(FINISH_REASONS.get(self._reason, "withheld"), self._reason)

    def _nothing(self, frame: Frame) -> None:
        """Ends of content and citations say nothing that is needed."""

    _HANDLERS: ClassVar[dict[str, Callable[[CohereReader, Frame], None]]] = {
        "tool-call-delta": _call_delta,
        "content-delta": _content_piece,
        "tool-plan-delta": _plan_piece,
        "message-start": _message_start,
        "content-start": _content_piece,
        "content-end": _nothing,
        "tool-call-start": _call_start,
        "tool-call-end": _call_end,
        "citation-start": _nothing,
        "citation-end": _nothing,
        "message-end": _message_end,
    }
    kinds = frozenset(_HANDLERS)


def _place(item: tuple[object, object]) -> int:
    return item[0] if isinstance(item[0], int) else -1


def _whole(count: object) -> object:
    """A token count as an integer; Cohere's SDK gives it as a float."""
    return int(count) if isinstance(count, float) and count.is_integer() else count


def _sent_back(call: OpenCall, assembled: AssembledCalls) -> Frame:
    entry: Frame = {"id": call.call_id} if call.call_id is not None else {}
    return {**entry, "type": "function", "function": {"name": call.name, "arguments": assembled.text_of(call)}}


def detect(kind: str, frame: Frame) -> bool:
    """Whether this frame or whole response can only be of this dialect. Version 1 has other names and no message."""
    return kind in CohereReader.kinds or ("finish_reason" in frame and isinstance(frame.get("message"), dict))
