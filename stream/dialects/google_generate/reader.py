"""Reads Google generateContent: the parts of one candidate from all chunks, and one finish reason.

Decides what a part means, and which finish reasons let calls run. Must not know bytes, or how arguments in pieces are
assembled.
"""

from __future__ import annotations

from typing import ClassVar

from ...turns.assembly import AssembledCalls
from ...turns.reader import DialectReader, Frame, mapping, text, without
from ...turns.turn import Dialect, TurnOutcome
from ...turns.turn_builder import OpenCall, OpenTurn
from ...wire.arguments import joined
from .calls import GenerateCalls

FINISH_REASONS: dict[str, TurnOutcome] = {
    "STOP": "completed",
    "MAX_TOKENS": "truncated",
    "CONTINUATION": "truncated",
    "SAFETY": "filtered",
    "RECITATION": "filtered",
    "LANGUAGE": "filtered",
    "BLOCKLIST": "filtered",
    "PROHIBITED_CONTENT": "filtered",
    "SPII": "filtered",
    "MODEL_ARMOR": "filtered",
    "ESCALATION": "filtered",
    "PUP_LIMITED_DISABLED": "filtered",
    "MALFORMED_FUNCTION_CALL": "failed",
    "UNEXPECTED_TOOL_CALL": "failed",
    "MALFORMED_RESPONSE": "failed",
    "TOO_MANY_TOOL_CALLS": "failed",
    "MISSING_THOUGHT_SIGNATURE": "failed",
    "NO_IMAGE": "failed",
    "OTHER": "failed",
}
_NOT_FINISHED = (None, "", "FINISH_REASON_UNSPECIFIED", 0)
# `enum-encoding=int`: the numbers of both Google's services; from 6 on the two count differently.
_NUMBERED = {1: "STOP", 2: "MAX_TOKENS", 3: "SAFETY", 4: "RECITATION", 5: "OTHER"}


class GenerateReader(DialectReader):
    dialect: ClassVar[Dialect] = "google-generate"

    def __init__(self, turn: OpenTurn) -> None:
        super().__init__(turn)
        self._calls = GenerateCalls(turn)
        self._parts: list[tuple[Frame, OpenCall | None]] = []  # for the echo, in order

    def read(self, kind: str, frame: Frame) -> None:
        self.turn.identify(frame.get("responseId"))
        self.turn.add_usage(frame.get("usageMetadata"))
        if "promptFeedback" in frame and (blocked := mapping(frame["promptFeedback"]).get("blockReason")):
            self.turn.end("filtered", str(blocked))
        for candidate in self._first_candidate(frame):
            for part in self.objects_in(self.object_in(candidate, "content"), "parts"):
                self._part(part)
            self._finish(candidate.get("finishReason"))

    def body(self, document: Frame) -> None:
        self.read("", document)

    def bodies(self, documents: list[Frame]) -> bool:
        for document in documents:
            self.read("", document)
        return True

    def close(self) -> None:
        self._calls.close()
        if self.turn.ended is False:
            self.turn.endings.clear()  # an array without its closing bracket was cut, whatever was told before
        self.turn.released |= bool(self.turn.endings)

    def contradiction(self, calls: int) -> str | None:
        return None  # STOP fits any number of calls

    def assistant(self, assembled: AssembledCalls) -> list[Frame]:
        parts: list[Frame] = []
        words: list[str] = []
        for part, call in self._parts:
            if _is_plain(part):
                words.append(part["text"])
            else:
                parts += _as_part(words)
                words = []
                if call is None or call in assembled:
                    parts.append(_sent_back(part, call, assembled))
        return parts + _as_part(words)

    def _part(self, part: Frame) -> None:
        if (piece := part.get("functionCall")) is not None:
            call = self._calls.take(piece, without(part, "functionCall") if len(part) > 1 else {})
            if call is not None:
                self._parts.append((part, call))
            return
        self._parts.append((part, None))
        if not part.get("thought"):
            self.turn.add_text(part.get("text"))

    def _first_candidate(self, frame: Frame) -> list[Frame]:
        """The parts of a frame that belong to candidate 0. Google omits the index where it is 0."""
        return [one for one in self.objects_in(frame, "candidates") if one.get("index") in (0, "0", None)]

    def _finish(self, reason: object) -> None:
        if reason in _NOT_FINISHED:
            return
        word = text(reason) or _NUMBERED.get(reason if type(reason) is int else 0, str(reason))
        image = "filtered" if word.startswith("IMAGE_") else "withheld"
        self.turn.end(FINISH_REASONS.get(word, image), word)  # type: ignore[arg-type]


def _is_plain(part: Frame) -> bool:
    """Whether a part is text and nothing else. Adjacent ones are joined; parts with a signature are not."""
    return len(part) == 1 and isinstance(part.get("text"), str)


def _as_part(words: list[str]) -> list[Frame]:
    """One part with these pieces of text; empty where they are."""
    return [{"text": joined(words)}] if any(words) else []


def _sent_back(part: Frame, call: OpenCall | None, assembled: AssembledCalls) -> Frame:
    if call is None:
        return part
    about: Frame = {"id": call.call_id} if call.call_id is not None else {}
    about |= {"name": call.name, "args": assembled.value_of(call)}
    return {**without(part, "functionCall"), **call.echo, "functionCall": about}


def detect(kind: str, frame: Frame) -> bool:
    """Whether this frame or whole response can only be of this dialect."""
    return not frame.keys().isdisjoint(("candidates", "promptFeedback", "usageMetadata"))
