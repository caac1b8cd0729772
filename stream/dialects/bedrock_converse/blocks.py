"""Content blocks of Converse: which blocks are calls for the harness, and how each block is sent back.

Must not know the order of events, or stop reasons.
"""

from __future__ import annotations

from typing import Any

from ...turns.reader import Frame, mapping, mappings, text
from ...turns.turn_builder import OpenCall, OpenTurn
from ...wire.arguments import best_effort_object


class Block:
    """One block: its start (or all of it, where it was not streamed), what deltas added, and its call if it has one."""

    __slots__ = ("call", "closed", "input", "pieces", "start")

    def __init__(self, start: Frame, call: OpenCall | None, *, whole: bool = False) -> None:
        self.start = start
        self.call = call
        self.closed = whole
        self.input: list[str] = []
        self.pieces: list[Frame] = []

    def grow(self, delta: Frame) -> None:
        self.pieces.append(delta)

    def sent_back(self) -> list[Frame]:
        """The block as the service accepts it in a history; empty where it is empty or of an unknown kind."""
        if self.closed and not self.pieces and self._came_whole():
            return [] if _is_blank(self.start) else [self.start]
        kind = next(iter(self.start), "")
        if kind == "toolUse":
            return [{"toolUse": {**mapping(self.start["toolUse"]), "input": best_effort_object(self.input)}}]
        if kind == "toolResult":
            content = [part for delta in self.pieces for part in mappings(delta.get("toolResult"))]
            return [{"toolResult": {**mapping(self.start["toolResult"]), "content": content}}]
        if kind == "image":
            image = mapping(self.start["image"])
            return [{"image": {**image, **mapping(delta.get("image"))}} for delta in self.pieces[:1]]
        return self._thoughts() or self._words()

    def _came_whole(self) -> bool:
        start = mapping(self.start.get("toolUse"))
        return "input" in start or not ({"toolUse", "toolResult", "image"} & self.start.keys())

    def _thoughts(self) -> list[Frame]:
        thoughts = [mapping(delta.get("reasoningContent")) for delta in self.pieces]
        said = "".join(text(thought.get("text")) for thought in thoughts)
        signature = "".join(text(thought.get("signature")) for thought in thoughts)
        hidden = [thought["redactedContent"] for thought in thoughts if thought.get("redactedContent")]
        blocks: list[Frame] = [{"reasoningContent": {"redactedContent": piece}} for piece in hidden]
        if said or signature:
            signed = {"signature": signature} if signature else {}
            blocks.append({"reasoningContent": {"reasoningText": {"text": said, **signed}}})
        return blocks

    def _words(self) -> list[Frame]:
        said = "".join(text(delta.get("text")) for delta in self.pieces)
        citations: list[Any] = [delta["citation"] for delta in self.pieces if delta.get("citation")]
        if not said.strip():
            return []
        if citations:
            return [{"citationsContent": {"content": [{"text": said}], "citations": citations}}]
        return [{"text": said}]


def call_of(turn: OpenTurn, start: Frame) -> OpenCall | None:
    """Open a call where this start or whole block is one for the harness; None for tools that the server runs."""
    about = start.get("toolUse")
    if not isinstance(about, dict):
        if about is not None:
            turn.violate("toolUse is not an object")
        return None
    if about.get("type") == "server_tool_use":
        return None
    call = turn.open_call()
    call.identify(about.get("toolUseId"))
    call.rename(about.get("name"))
    return call


def _is_blank(block: Frame) -> bool:
    return not block or (block.keys() == {"text"} and not text(block["text"]).strip())
