"""The calls of one Chat message. Servers differ in how an entry of ``tool_calls`` names the call it belongs to.

Decides to which call an entry belongs. Must not know finish reasons.
"""

from __future__ import annotations

from ...turns.assembly import AssembledCalls
from ...turns.reader import Frame, mapping, without
from ...turns.turn import CallKind
from ...turns.turn_builder import OpenCall, OpenTurn
from ...wire.arguments import Unusable, decode_pieces
from ...wire.limits import TurnLimits

# Type tag, which is also the member with name and arguments -> (kind, the member of that with the arguments).
_KINDS: dict[str, tuple[CallKind, str]] = {"function": ("function", "arguments"), "custom": ("custom", "input")}


class _Slot:
    """One entry of ``tool_calls`` under construction; ``call`` is None for other types of calls."""

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
        self._indexed = False  # some entry so far had an index
        self._legacy: OpenCall | None = None

    @property
    def any(self) -> bool:
        """Whether any call for the harness was opened."""
        return bool(self._turn.calls)

    @property
    def lack_text(self) -> bool:
        """Whether a call with a name got no arguments."""
        return any(call.name and not call.pieces and not call.too_large for call in self._turn.calls)

    @property
    def are_whole(self) -> bool:
        """Whether each call's text is one whole object with at least one member; ``{}`` may be a placeholder."""
        return all(call.kind != "custom" and _is_filled(call, self._turn.limits) for call in self._turn.calls)

    def take(self, entries: object, *, whole: bool) -> None:
        """Read the ``tool_calls`` of a delta; ``whole``: of a complete message, in which each entry is one call."""
        if not isinstance(entries, list):
            self._turn.violate("tool_calls is not a list")
            return
        for entry in entries:
            if isinstance(entry, dict):
                self._take(entry, whole)
            elif entry is not None:
                self._turn.violate("an entry of tool_calls is not an object")

    def take_legacy(self, piece: object) -> None:
        """Read the legacy ``function_call``, which has no id."""
        if not isinstance(piece, dict):
            self._turn.violate("function_call is not an object")
            return
        if not piece.get("name") and not piece.get("arguments"):
            return  # some servers always send an empty one
        if self._legacy is None:
            self._legacy = self._turn.open_call("function")
            self._legacy.echo = {"legacy": True}  # its result is sent back in the legacy form
        self._legacy.extend_name(piece.get("name"))
        self._legacy.add(piece.get("arguments"))
        self._check_forms()

    def describe(self, message: Frame, assembled: AssembledCalls) -> None:
        """Add the calls to the message that is sent back."""
        entries = [_entry(slot, assembled) for slot in self._slots if slot.call is not None and slot.call in assembled]
        if entries:
            message["tool_calls"] = entries
        if self._legacy is not None and self._legacy in assembled:
            message["function_call"] = {"name": self._legacy.name, "arguments": assembled.text_of(self._legacy)}

    def _check_forms(self) -> None:
        if self._legacy is not None and self._slots:
            self._turn.violate("calls in the legacy form together with tool_calls")

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
        stated = tag if slot.call is not None else entry.get("type")  # other types have their own fields
        if stated and slot.tag not in (None, stated):
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
            self._turn.violate(f"the {tag} of a call is not an object")
        call.extend_name(about.get("name"))
        call.add(about.get(member))

    def _find(self, entry: Frame, tag: str | None) -> _Slot | None:
        call_id, name = _present(entry.get("id")), _name(entry, tag)
        index = _index(entry.get("index"))
        if index is _BAD:
            self._turn.violate("the index of a call is not a number")
            return None
        if index is None:
            known = self._by_id.get(call_id) if isinstance(call_id, str) else None
            if known or not (name or not self._slots):
                return known or self._going_on()
            return self._open(entry, tag)
        self._indexed = True
        current = self._by_index.get(index)
        if current is None:
            return self._at_new_index(entry, tag, named=bool(call_id or name))
        if call_id and name and call_id != current.id and not _late_id(current, name):
            return self._open(entry, tag)
        return current

    def _at_new_index(self, entry: Frame, tag: str | None, *, named: bool) -> _Slot | None:
        if named or not self._slots:
            return self._open(entry, tag)
        return self._only()

    def _going_on(self) -> _Slot | None:
        """The call of a fragment without any identity: the last one, as long as no entry had an index. Otherwise the
        last one would be a guess, and arguments of the wrong call may still parse."""
        return self._only() if self._indexed else self._slots[-1]

    def _only(self) -> _Slot | None:
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


def _is_filled(call: OpenCall, limits: TurnLimits) -> bool:
    try:
        return bool(call.pieces) and bool(decode_pieces(call.pieces, limits).value)
    except Unusable:
        return False


class _Bad(int):
    """An index that is not a number."""


_BAD = _Bad()


def _index(value: object) -> int | None:
    if value is None or type(value) is int:
        return value
    return int(value) if isinstance(value, str) and value.isdecimal() and value.isascii() and len(value) < 10 else _BAD


def _present(value: object) -> object:
    """The id unchanged; None where it is absent: null, empty, blank, or the string "null"."""
    return None if isinstance(value, str) and value.strip() in ("", "null") else value


def _tag(entry: Frame) -> str | None:
    """The type tag; where it is missing or empty, the type whose member is present."""
    tag = entry.get("type")
    if tag:
        return tag if isinstance(tag, str) else "unknown"
    return next((name for name in _KINDS if entry.get(name) is not None), None)


def _name(entry: Frame, tag: str | None) -> object:
    return mapping(entry.get(tag)).get("name") if tag in _KINDS else None


def _late_id(slot: _Slot, name: object) -> bool:
    """Whether the entry adds the id to a call that had none so far, rather than begins another call."""
    call = slot.call
    return slot.id is None and call is not None and (call.name in ("", name) or not call.pieces)


def _entry(slot: _Slot, assembled: AssembledCalls) -> Frame:
    assert slot.call is not None
    call = slot.call
    tag = "custom" if call.kind == "custom" else "function"
    entry: Frame = {"id": call.call_id} if call.call_id is not None else {}
    return {**entry, "type": tag, tag: {"name": call.name, _KINDS[tag][1]: assembled.text_of(call)}, **call.echo}
