"""Reads Anthropic Messages: content blocks that start, grow and stop, and one stop reason.

Decides what a block means, and which stop reasons let calls run. Must not know bytes or argument JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...turns.assembly import AssembledCalls
from ...turns.reader import DialectReader, Frame, mapping, mappings, text, without
from ...turns.turn import Dialect, TurnOutcome
from ...turns.turn_builder import OpenCall, OpenTurn
from ...wire.arguments import best_effort_object

STOP_REASONS: dict[str, TurnOutcome] = {
    "tool_use": "completed",
    "end_turn": "completed",
    "stop_sequence": "completed",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "refusal": "filtered",
    "pause_turn": "paused",
    "compaction": "paused",
}

# Delta type -> (the member of the delta, the member of the block that it extends)
_GROWING = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "compaction_delta": ("content", "content"),
}
_TEXTUAL = frozenset({"text", "thinking", "redacted_thinking"})
_OWN_KINDS = ("message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta")


class _Block:
    """One content block: its start, what deltas added, and its call where it is one that the harness must run."""

    __slots__ = ("call", "closed", "grown", "input", "start")

    def __init__(self, start: Frame, call: OpenCall | None) -> None:
        self.start = start
        self.call = call
        self.closed = False
        self.grown: dict[str, list[Any]] = {}
        self.input: list[str] = []  # of a server tool, for the echo

    @property
    def type(self) -> str:
        return text(self.start.get("type"))

    def grow(self, member: str, piece: object) -> None:
        if piece:
            self.grown.setdefault(member, []).append(piece)

    def echo(self) -> Frame:
        """The block as the provider expects it back; arguments of the harness's calls are added by the caller."""
        block = dict(self.start)
        for member, pieces in self.grown.items():
            if member == "citations":
                block[member] = [*mappings(block.get(member)), *pieces]
            else:
                block[member] = text(block.get(member)) + "".join(map(str, pieces))
        return block


class AnthropicReader(DialectReader):
    dialect: ClassVar[Dialect] = "anthropic"

    def __init__(self, turn: OpenTurn) -> None:
        super().__init__(turn)
        self._started = False
        self._blocks: list[_Block] = []  # by index, which counts up from 0
        self._reasons: list[str] = []
        self._stopped = False

    def read(self, kind: str, frame: Frame) -> None:
        handler = self._HANDLERS.get(kind)
        if handler is None:
            return
        if self._stopped:
            self.turn.violate(f"{kind} after message_stop")
        handler(self, frame)

    def body(self, document: Frame) -> None:
        self.turn.identify(document.get("id"))
        self.turn.add_usage(document.get("usage"))
        for content in mappings(document.get("content")):
            block = self._open(content)
            block.closed = True
            if block.type == "text":
                self.turn.add_text(content.get("text"))
        self._stop_reason(document.get("stop_reason"))
        self._message_stop(document)

    def contradiction(self, calls: int) -> str | None:
        if calls == 0 and "tool_use" in self._reasons:
            return "stop reason tool_use without a call"
        if calls and any(reason != "tool_use" for reason in self._reasons):
            return f"stop reason {self._reasons[-1]} together with calls"
        return None

    def counted(self) -> list[OpenCall]:
        return [block.call for block in self._blocks[self._last_fallback() :] if block.call]

    def assistant(self, assembled: AssembledCalls) -> list[Frame]:
        content = []
        for block in self._blocks:
            if block.call is None:
                content += _sent_back(block)
            elif block.call in assembled:
                content.append({**block.start, "input": assembled.value_of(block.call)})
        return content

    def unchanged(self) -> list[Frame]:
        content = []
        for block in self._blocks:
            if block.call is None:
                content += _sent_back(block)
            else:
                content.append({**block.start, "input": best_effort_object(block.call.pieces)})
        return content

    def _last_fallback(self) -> int:
        """The index after the last ``fallback`` block, where another model took over. Calls before it never count."""
        return max((at + 1 for at, block in enumerate(self._blocks) if block.type == "fallback"), default=0)

    def _message_start(self, frame: Frame) -> None:
        message = self.object_in(frame, "message")
        repeats = self.turn.turn_id is not None and message.get("id") == self.turn.turn_id and not self._blocks
        if self._started and not repeats:
            self.turn.violate("a second message_start")
        if any(block.get("type") == "tool_use" for block in mappings(message.get("content"))):
            self.turn.violate("a call inside message_start")
        self._started = True
        self.turn.identify(message.get("id"))
        self.turn.add_usage(message.get("usage"))

    def _block_start(self, frame: Frame) -> None:
        index = frame.get("index")
        if type(index) is not int or index != len(self._blocks):
            self.turn.violate("a skipped or reused block index")
            return
        if not self._started or self._reasons:
            self.turn.violate("a block outside of its message")
        if not (start := self.object_in(frame, "content_block")):
            self.turn.violate("a block without its content")
        block = self._open(start)
        if block.type == "text":
            self.turn.add_text(block.start.get("text"))

    def _open(self, start: Frame) -> _Block:
        call = None
        if start.get("type") == "tool_use":
            call = self.turn.open_call()
            call.identify(start.get("id"))
            call.rename(start.get("name"))
            call.echo = without(start, "type", "id", "name", "input")
            call.open_with(start.get("input"))
        block = _Block(start, call)
        self._blocks.append(block)
        return block

    def _open_block(self, frame: Frame) -> _Block | None:
        index = frame.get("index")
        if type(index) is int and 0 <= index < len(self._blocks) and not self._blocks[index].closed:
            return self._blocks[index]
        self.turn.violate("a fragment or an end without its open block")
        return None

    def _delta(self, frame: Frame) -> None:
        block = self._open_block(frame)
        if block is None:
            return
        delta = self.object_in(frame, "delta")
        kind = delta.get("type")
        if kind == "input_json_delta":
            self._input(block, delta.get("partial_json"))
        elif kind == "citations_delta":
            block.grow("citations", delta.get("citation"))
        elif "partial_json" in delta or (kind is None and block.call is not None):
            self.turn.violate("arguments in a delta of another type")
        elif isinstance(kind, str) and kind in _GROWING:
            self._grow(block, kind, delta)

    def _input(self, block: _Block, piece: object) -> None:
        if block.call is not None:
            block.call.add(piece)
        elif block.type in _TEXTUAL:
            self.turn.violate("arguments inside a block of text")
        elif isinstance(piece, str):
            block.input.append(piece)

    def _grow(self, block: _Block, kind: str, delta: Frame) -> None:
        source, member = _GROWING[kind]
        if block.call is not None:
            self.turn.violate("text inside a call")
            return
        piece = delta.get(source)
        block.grow(member, piece)
        if kind == "text_delta" and block.type == "text":
            self.turn.add_text(piece)

    def _block_stop(self, frame: Frame) -> None:
        block = self._open_block(frame)
        if block is None:
            return
        block.closed = True
        if block.call is not None:
            block.call.finish()

    def _message_delta(self, frame: Frame) -> None:
        self.turn.add_usage(frame.get("usage"))
        self._stop_reason(mapping(frame.get("delta")).get("stop_reason"))

    def _stop_reason(self, reason: object) -> None:
        if reason is not None:
            self._reasons.append(str(reason))

    def _message_stop(self, frame: Frame) -> None:
        self._stopped = self.turn.released = True
        if not all(block.closed for block in self._blocks):
            self.turn.violate("a block is still open at message_stop")
        for reason in self._reasons or ["null"]:
            self.turn.end(STOP_REASONS.get(reason, "withheld"), reason)

    _HANDLERS: ClassVar[dict[str, Callable[[AnthropicReader, Frame], None]]] = {
        "content_block_delta": _delta,
        "content_block_start": _block_start,
        "content_block_stop": _block_stop,
        "message_start": _message_start,
        "message_delta": _message_delta,
        "message_stop": _message_stop,
    }
    kinds = frozenset({*_HANDLERS, "ping"})


def _sent_back(block: _Block) -> list[Frame]:
    """A block without a call, for the echo; an empty text is left out, since the provider refuses it."""
    echo = block.echo()
    if block.input:
        echo["input"] = best_effort_object(block.input)
    return [] if block.type == "text" and not echo.get("text") else [echo]


def detect(kind: str, frame: Frame) -> bool:
    """Whether this frame or whole response can only be of this dialect."""
    return kind in _OWN_KINDS or (kind == "message" and "content" in frame)
