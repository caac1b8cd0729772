"""Reads Ollama's native chat: one JSON object a line, whole calls, and a last line with ``done``.

Decides which done reasons let calls run. Must not know bytes or argument JSON. Source: Ollama's ``api/types.go``.
"""

from __future__ import annotations

from typing import ClassVar

from ...turns.assembly import AssembledCalls
from ...turns.reader import DialectReader, Frame, text, without
from ...turns.turn import Dialect, TurnOutcome
from ...turns.turn_builder import OpenTurn

DONE_REASONS: dict[str, TurnOutcome] = {"stop": "completed", "length": "truncated"}
_USAGE = ("prompt_eval_count", "eval_count")


class OllamaReader(DialectReader):
    dialect: ClassVar[Dialect] = "ollama"

    def __init__(self, turn: OpenTurn) -> None:
        super().__init__(turn)
        self._done = False
        self._thinking: list[str] = []

    def read(self, kind: str, frame: Frame) -> None:
        if self._done:
            self.turn.violate("a line after done")
            return
        if usage := {name: frame[name] for name in _USAGE if isinstance(frame.get(name), int)}:
            self.turn.add_usage(usage)
        message = self.object_in(frame, "message")
        if "message" not in frame and text(frame.get("response")):
            self.turn.violate("an answer of /api/generate, not a chat turn")
        self.turn.add_text(message.get("content"))
        if thought := text(message.get("thinking")):
            self._thinking.append(thought)
        for entry in self.objects_in(message, "tool_calls"):
            self._call(entry)
        if frame.get("done") is True:
            self._end(frame.get("done_reason"))

    def body(self, document: Frame) -> None:
        self.read("", document)

    def done(self) -> None:
        self.turn.violate("a line that is no JSON object")

    def contradiction(self, calls: int) -> str | None:
        return None  # `stop` fits any number of calls

    def assistant(self, assembled: AssembledCalls) -> list[Frame]:
        message: Frame = {"role": "assistant", "content": self.turn.text}
        if self._thinking:
            message["thinking"] = "".join(self._thinking)
        calls = [call for call in self.turn.calls if call in assembled]
        if calls:
            message["tool_calls"] = [
                {
                    **({"id": call.call_id} if call.call_id else {}),
                    "function": {"name": call.name, "arguments": assembled.value_of(call)},
                }
                for call in calls
            ]
        return [message] if calls or self.turn.text or self._thinking else []

    def _call(self, entry: Frame) -> None:
        """One whole call. Its index counts for itself in each of the server's parsers, and means nothing."""
        about = self.object_in(entry, "function")
        call = self.turn.open_call()
        call.identify(entry.get("id"))
        call.rename(about.get("name"))
        call.echo = without(entry, "id", "type", "function")
        call.add(about.get("arguments"))
        call.finish()

    def _end(self, reason: object) -> None:
        self._done = self.turn.released = True
        if reason in (None, ""):  # absent before 2024; empty where the connection to the model closed
            self.turn.end("truncated" if self.turn.calls else "completed", "none")
        else:
            self.turn.end(DONE_REASONS.get(text(reason), "withheld"), str(reason))


def detect(kind: str, frame: Frame) -> bool:
    """Whether this frame or whole response can only be of this dialect; ``/api/generate`` has no message."""
    return isinstance(frame.get("message"), dict) and isinstance(frame.get("done"), bool)
