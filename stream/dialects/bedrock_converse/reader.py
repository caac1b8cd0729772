"""Reads Amazon Bedrock Converse: content blocks by index, and one stop reason. Only calls begin with a start event.

Decides what a block means, and which stop reasons let calls run. Must not know bytes or argument JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from ...turns.assembly import AssembledCalls
from ...turns.reader import DialectReader, Frame, mapping, mappings, text
from ...turns.turn import Dialect, TurnOutcome
from ...turns.turn_builder import OpenCall, OpenTurn
from ...wire.frames import ProviderError
from .blocks import Block, call_of

STOP_REASONS: dict[str, TurnOutcome] = {
    "tool_use": "completed",
    "end_turn": "completed",
    "stop_sequence": "completed",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "guardrail_intervened": "filtered",
    "content_filtered": "filtered",
    "malformed_tool_use": "failed",
    "malformed_model_output": "failed",
}
_OWN_KINDS = frozenset({"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop"})


class ConverseReader(DialectReader):
    dialect: ClassVar[Dialect] = "bedrock-converse"

    def __init__(self, turn: OpenTurn) -> None:
        super().__init__(turn)
        self._started = False
        self._stopped = False
        self._blocks: dict[int, Block] = {}
        self._reason = ""

    def read(self, kind: str, frame: Frame) -> None:
        handler = self._HANDLERS.get(kind)
        if handler is None:
            return
        if self._stopped and kind in _OWN_KINDS:
            self.turn.violate(f"{kind} after messageStop")
        handler(self, frame)

    def body(self, document: Frame) -> None:
        output = document.get("output")
        told = next((document[name] for name in ("message", "Message", "__type") if name in document), None)
        if output is None and told is not None:
            self.turn.fail(ProviderError(text(document.get("__type")) or None, str(told)))
        self.turn.identify(mapping(document.get("ResponseMetadata")).get("RequestId"))  # set by boto3
        self.turn.add_usage(document.get("usage"))
        for index, content in enumerate(mappings(mapping(mapping(output).get("message")).get("content"))):
            self._whole(index, content)
        self._message_stop(document)

    def contradiction(self, calls: int) -> str | None:
        if calls == 0 and self._reason == "tool_use":
            return "stop reason tool_use without a call"
        if calls and self._reason == "stop_sequence":
            return "stop reason stop_sequence together with calls"
        return None

    def assistant(self, assembled: AssembledCalls) -> list[Frame]:
        content: list[Frame] = []
        for _, block in sorted(self._blocks.items()):
            if block.call is None:
                content += block.sent_back()
            elif block.call in assembled:
                about = {"toolUseId": block.call.call_id, "name": block.call.name}
                content.append({"toolUse": {**about, "input": assembled.value_of(block.call)}})
        return content

    def shown(self) -> list[OpenCall]:
        return [block.call for _, block in sorted(self._blocks.items()) if block.call]

    def _whole(self, index: int, content: Frame) -> None:
        block = self._blocks[index] = Block(content, call_of(self.turn, content), whole=True)
        if block.call is not None:
            block.call.add_value(mapping(content["toolUse"]).get("input"))
            block.call.finish()
        self.turn.add_text(content.get("text"))
        for said in mappings(mapping(content.get("citationsContent")).get("content")):
            self.turn.add_text(said.get("text"))

    def _message_start(self, frame: Frame) -> None:
        if self._started:
            self.turn.violate("a second messageStart")
        self._started = True

    def _index(self, frame: Frame) -> int | None:
        index = frame.get("contentBlockIndex")
        if type(index) is int:
            return index
        self.turn.violate("a block without its index")
        return None

    def _block_start(self, frame: Frame) -> None:
        index = self._index(frame)
        if index is None:
            return
        if index in self._blocks:
            self.turn.violate("a second block under one index")
            return
        start = self.object_in(frame, "start")
        block = self._blocks[index] = Block(start, call_of(self.turn, start))
        if block.call is not None:
            block.call.add(start["toolUse"].get("input"))  # some gateways send it here

    def _block_delta(self, frame: Frame) -> None:
        index = self._index(frame)
        if index is None:
            return
        delta = self.object_in(frame, "delta")
        block = self._blocks.get(index)
        if block is None:
            block = self._blocks[index] = Block({}, None)  # text and reasoning have no start
        if "toolUse" in delta:
            self._input(block, self.object_in(delta, "toolUse").get("input"))
        elif block.call is not None:
            self.turn.violate("text inside a call")
        else:
            block.grow(delta)
            self.turn.add_text(delta.get("text"))

    def _input(self, block: Block, piece: object) -> None:
        if block.call is not None and not block.closed:
            block.call.add(piece)
        elif block.call is None and "toolUse" in block.start:
            block.input.append(text(piece))  # of a tool that the server ran
        else:
            self.turn.violate("a fragment of a call before its start or after its stop")

    def _block_stop(self, frame: Frame) -> None:
        index = self._index(frame)
        block = None if index is None else self._blocks.get(index)
        if block is not None:
            block.closed = True
            if block.call is not None:
                block.call.finish()

    def _message_stop(self, frame: Frame) -> None:
        self._stopped = self.turn.released = True
        self.turn.usage_due = self.turn.usage is None
        if any(block.call is not None and not block.closed for block in self._blocks.values()):
            self.turn.violate("a call is still open at messageStop")
        reason = frame.get("stopReason")
        self._reason = "null" if reason is None else str(reason)
        self.turn.end(STOP_REASONS.get(self._reason, "withheld"), self._reason)

    def _metadata(self, frame: Frame) -> None:
        self.turn.add_usage(frame.get("usage"))
        self.turn.usage_due = False

    _HANDLERS: ClassVar[dict[str, Callable[[ConverseReader, Frame], None]]] = {
        "contentBlockDelta": _block_delta,
        "contentBlockStart": _block_start,
        "contentBlockStop": _block_stop,
        "messageStart": _message_start,
        "messageStop": _message_stop,
        "metadata": _metadata,
    }
    kinds = frozenset(_HANDLERS)


def detect(kind: str, frame: Frame) -> bool:
    """Whether this frame or whole response can only be of this dialect."""
    return kind in _OWN_KINDS or ("stopReason" in frame and "message" in mapping(frame.get("output")))
