"""The calls of one Chat message, whose entries say in many ways which call they mean.

Decides to which call an entry belongs, by the rules of the policy. Must not know finish reasons.
"""

from __future__ import annotations

from ...turns.assembly import AssembledCalls
from ...turns.reader import Frame, mapping, without
from ...turns.turn import CallKind
from ...turns.turn_builder import OpenCall, OpenTurn

# The type tag, and the member of an entry that describes such a call: its name and its arguments.
_KINDS: dict[str, tuple[CallKind, str]] = {"function": ("function", "arguments"), "custom": ("custom", "input")}


class _Slot:
    """One entry of ``tool_calls`` as it grows; ``call`` is None when its type tag says that it is not ours."""

    __slots__ = ("call", "id", "tag")

    def __init__(self, call: OpenCall | None, tag: str | None) -> None:
        self.call = call
        self.tag = tag
        self.id: str | None = None


class ChatCalls:
    """All calls of one message."""

    def __init__(self, turn: OpenTurn) -> None:
        self._turn = turn
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}  # the latest call with that index
        self._by_id: dict[str, _Slot] = {}
        self._legacy: OpenCall | None = None

    @property
    def any(self) -> bool:
        """Whether a call of ours was opened at all."""
        return bool(self._turn.calls)

    @property
    def lack_text(self) -> bool:
        """Whether a call of ours that has a name never got any arguments."""
        return any(call.name and not call.pieces and not call.too_large for call in self._turn.calls)

    def take(self, entries: object, *, whole: bool) -> None:
        """The ``tool_calls`` of a delta or, ``whole``, of a message in which each entry is a call of its own."""
        if not isinstance(entries, list):
            self._turn.violate("tool_calls is no list")
            return
        for entry in entries:
            if isinstance(entry, dict):
                self._take(entry, whole)
            elif entry is not None:
                self._turn.violate("an entry of tool_calls is no object")

    def take_legacy(self, piece: object) -> None:
        """The old single ``function_call``, which has no id."""
        if not isinstance(piece, dict):
            self._turn.violate("function_call is no object")
            return
        if not piece.get("name") and not piece.get("arguments"):
            return  # some servers send the empty form beside everything
        if self._legacy is None:
            self._legacy = self._turn.open_call("function")
            self._legacy.echo = {"legacy": True}  # its result goes back in the old form, too
        self._legacy.extend_name(piece.get("name"))
        self._legacy.add(piece.get("arguments"))
        self._check_forms()

    def describe(self, message: Frame, settled: AssembledCalls) -> None:
        """Put the calls into the message that goes back."""
        entries = [_entry(slot, settled) for slot in self._slots if slot.call is not None and slot.call in settled]
        if entries:
            message["tool_calls"] = entries
        if self._legacy is not None and self._legacy in settled:
            message["function_call"] = {"name": self._legacy.name, "arguments": settled.text_of(self._legacy)}

    def _check_forms(self) -> None:
        if self._legacy is not None and self._slots:
            self._turn.violate("calls in the old form beside calls in the new one")

    def _take(self, entry: Frame, whole: bool) -> None:
        tag = _tag(entry)
        slot = self._open(entry, tag) if whole else self._find(entry, tag)
        self._check_forms()
        if slot is None:
            return
        call_id = _present(entry.get("id"))
        if isinstance(call_id, str) and slot.id is None:
            slot.id = call_id
            self._by_id.setdefault(call_id, slot)
        told = tag if slot.call is not None else entry.get("type")  # what is not ours has its own fields
        if told and slot.tag not in (None, told):
            self._turn.violate("a call changed its type")
        elif slot.call is not None:
            slot.tag = tag or slot.tag
            self._grow(slot.call, tag, entry)

    def _grow(self, call: OpenCall, tag: str | None, entry: Frame) -> None:
        call.identify(_present(entry.get("id")))
        call.echo |= without(entry, "index", "id", "type", "function", "custom")
        if tag is None:
            return
        if tag not in _KINDS:
            self._turn.violate("a call changed its type")
            return
        call.kind, member = _KINDS[tag]
        about = mapping(entry.get(tag))
        if entry.get(tag) not in (None, about):
            self._turn.violate(f"the {tag} of a call is no object")
        call.extend_name(about.get("name"))
        call.add(about.get(member))

    def _find(self, entry: Frame, tag: str | None) -> _Slot | None:
        call_id, name = _present(entry.get("id")), _name(entry, tag)
        index = _index(entry.get("index"))
        if index is _BAD:
            self._turn.violate("the index of a call is no number")
            return None
        if index is None:
            known = self._by_id.get(call_id) if isinstance(call_id, str) else None
            return known or (self._open(entry, tag) if name or not self._slots else self._slots[-1])
        current = self._by_index.get(index)
        if current is None:
            return self._at_new_index(entry, tag, named=bool(call_id or name))
        if call_id and name and call_id != current.id and not _late_id(current, name):
            return self._open(entry, tag)
        return current

    def _at_new_index(self, entry: Frame, tag: str | None, *, named: bool) -> _Slot | None:
        if named or not self._slots:
            return self._open(entry, tag)
        if len(self._slots) == 1:
            return self._slots[0]
        self._turn.violate("a fragment that could belong to several calls")
        return None

    def _open(self, entry: Frame, tag: str | None) -> _Slot:
        ours = tag is None or tag in _KINDS
        slot = _Slot(self._turn.open_call(None) if ours else None, tag)
        self._slots.append(slot)
        index = _index(entry.get("index"))
        if isinstance(index, int):
            self._by_index[index] = slot
        return slot


class _Bad(int):
    """An index that is no number."""


_BAD = _Bad()


def _index(value: object) -> int | None:
    if value is None or type(value) is int:
        return value
    return int(value) if isinstance(value, str) and value.isdecimal() and value.isascii() and len(value) < 10 else _BAD


def _present(value: object) -> object:
    """An id as it came; None where it is absent: null, empty, blank, or the word null."""
    return None if isinstance(value, str) and value.strip() in ("", "null") else value


def _tag(entry: Frame) -> str | None:
    """The type tag; where it is missing or empty, the field that is there."""
    tag = entry.get("type")
    if tag:
        return tag if isinstance(tag, str) else "unknown"
    return next((name for name in _KINDS if entry.get(name) is not None), None)


def _name(entry: Frame, tag: str | None) -> object:
    return mapping(entry.get(tag)).get("name") if tag in _KINDS else None


def _late_id(slot: _Slot, name: object) -> bool:
    """Whether the entry brings the id of a call that had none so far, and no other call."""
    call = slot.call
    return slot.id is None and call is not None and (call.name in ("", name) or not call.pieces)


def _entry(slot: _Slot, settled: AssembledCalls) -> Frame:
    assert slot.call is not None
    call = slot.call
    tag = "custom" if call.kind == "custom" else "function"
    entry: Frame = {"id": call.call_id} if call.call_id is not None else {}
    return {**entry, "type": tag, tag: {"name": call.name, _KINDS[tag][1]: settled.text_of(call)}, **call.echo}
