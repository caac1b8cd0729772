"""Reads OpenAI Chat Completions, also from compatible servers: one choice, its calls, and one finish reason.

Decides which finish reasons let calls run. Must not know bytes or argument JSON.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...turns.assembly import AssembledCalls
from ...turns.reader import DialectReader, Frame, mapping, mappings, text
from ...turns.turn import Dialect, TurnOutcome
from ...turns.turn_builder import OpenTurn
from ...wire.frames import error_in
from .calls import ChatCalls

FINISH_REASONS: dict[str, TurnOutcome] = {
    "tool_calls": "completed",
    "function_call": "completed",
    "stop": "completed",
    "eos": "completed",
    "eos_token": "completed",
    "length": "truncated",
    "max_tokens": "truncated",
    "model_length": "truncated",
    "model_context_window_exceeded": "truncated",
    "content_filter": "filtered",
    "sensitive": "filtered",
    "refusal": "filtered",
    "error": "failed",
    "network_error": "failed",
    "insufficient_system_resource": "failed",
    "abort": "aborted",
    "cancel": "aborted",
}
# What a proxy tells of the model's own finish reason beside a good one of its own, where the model was cut.
_NATIVE_CUTS = ("length", "max_tokens", "max_output_tokens", "model_length")
_PROMISE_CALLS = ("tool_calls", "function_call")
# Members of a message that some servers expect back with its calls, and the type of their pieces.
_ECHOED = {"reasoning_content": str, "reasoning": str, "reasoning_details": list}


class ChatReader(DialectReader):
    dialect: ClassVar[Dialect] = "openai-chat"
    ends_with_done: ClassVar[bool] = True

    def __init__(self, turn: OpenTurn) -> None:
        super().__init__(turn)
        self._calls = ChatCalls(turn)
        self._reasons: list[str] = []
        self._done = False
        self._whole = False
        self._refused = False
        self._native_cut: str | None = None
        self._spoke = False
        self._echo: dict[str, list[Any]] = {}

    def read(self, kind: str, frame: Frame) -> None:
        self.turn.identify(frame.get("id"))
        self.turn.add_usage(frame.get("usage"))
        for choice in self._first_choice(frame):
            self._choice(choice, "delta")

    def done(self) -> None:
        self._done = self.turn.released = True

    def body(self, document: Frame) -> None:
        self._whole = True
        self.turn.identify(document.get("id"))
        self.turn.add_usage(document.get("usage"))
        for choice in self._first_choice(document):
            self._choice(choice, "message")

    def close(self) -> None:
        if not self._reasons and not self._calls.any and (self._done or (self._whole and self._spoke)):
            self.turn.end("completed", "[DONE]" if self._done else "none")  # some servers never send a finish reason
        elif not self._reasons and self._done and self.turn.trust_done and self._calls.are_whole:
            self.turn.end("completed", "[DONE]")
        if self.turn.endings and self._native_cut:
            self.turn.end("truncated", self._native_cut)
        if self.turn.endings and self._refused:
            self.turn.end("filtered", "refusal")
        if not self._done and not self._whole and self._calls.lack_text:
            self._withdraw_finish()
        self.turn.released |= bool(self.turn.endings)

    def contradiction(self, calls: int) -> str | None:
        promised = next((reason for reason in self._reasons if reason in _PROMISE_CALLS), None)
        return f"finish reason {promised} without a call" if promised and calls == 0 else None

    def assistant(self, assembled: AssembledCalls) -> list[Frame]:
        message: Frame = {"role": "assistant", "content": self.turn.text or None}
        for member, pieces in self._echo.items():
            message[member] = pieces if _ECHOED[member] is list else "".join(pieces)
        self._calls.describe(message, assembled)
        if len(message) == 2 and not self.turn.text:
            return []  # an empty turn is not sent back
        if not assembled and not self.turn.text:
            message["content"] = ""  # null is accepted only together with calls
        return [message]

    def _withdraw_finish(self) -> None:
        """Treat the turn as cut where a call has no arguments and ``[DONE]`` is missing.

        Some servers send arguments after the finish reason, so these may be lost. `read_turn` then requests the turn
        again."""
        if self.turn.endings and all(outcome == "completed" for outcome, _ in self.turn.endings):
            self.turn.endings.clear()
            self.turn.notes.append("a call without argument text, and no [DONE] after it")

    def _first_choice(self, frame: Frame) -> list[Frame]:
        """The parts of a frame that belong to choice 0. Choices without an index are parts of one message."""
        return [choice for choice in self.objects_in(frame, "choices") if choice.get("index") in (0, "0", None)]

    def _choice(self, choice: Frame, member: str) -> None:
        if error := error_in(choice):
            self.turn.fail(error)
        if choice.get("text") and _is_text_completion(choice):
            self.turn.violate("a text completion, not a chat turn")
        self._spoke |= isinstance(choice.get(member), dict)
        message = mapping(choice.get(member)) if self._whole else self.object_in(choice, member)
        self._message(message, whole=self._whole)
        reason = choice.get("finish_reason")
        self._finish(mapping(choice.get("finish_details")).get("type") if reason in (None, "") else reason)
        native = choice.get("native_finish_reason")
        if isinstance(native, str) and native.lower() in _NATIVE_CUTS:
            self._native_cut = native

    def _message(self, delta: Frame, *, whole: bool) -> None:
        if self._done and any(delta.get(member) for member in ("content", "tool_calls", "function_call", "refusal")):
            self.turn.violate("content after [DONE]")
        self._content(delta.get("content"))
        if delta.get("refusal"):
            self._refused = True
        for member, kind in _ECHOED.items():
            if isinstance(piece := delta.get(member), kind) and piece:
                self._echo.setdefault(member, []).extend([piece] if kind is str else piece)
        if (entries := delta.get("tool_calls")) is not None:
            self._calls.take(entries, whole=whole)
        if (legacy := delta.get("function_call")) is not None:
            self._calls.take_legacy(legacy)

    def _content(self, content: object) -> None:
        """Add text, or a list of parts, among which some servers put thinking."""
        self.turn.add_text(content)
        for part in mappings(content):
            if part.get("type") == "text":
                self.turn.add_text(part.get("text"))
            elif part.get("type") == "refusal":
                self._refused = True

    def _finish(self, reason: object) -> None:
        if reason not in (None, ""):
            if self._done:
                self.turn.violate("a finish reason after [DONE]")
            word = text(reason) or str(reason)
            self._reasons.append(word)
            self.turn.end(FINISH_REASONS.get(word, "withheld"), word)


def detect(kind: str, frame: Frame) -> bool:
    """Whether this frame or whole response can only be of this dialect. Text completions are another interface."""
    if "choices" not in frame:
        return str(frame.get("object")).startswith("chat.completion")
    choices = mappings(frame["choices"])
    return frame.get("object") != "text_completion" and not any(map(_is_text_completion, choices))


def _is_text_completion(choice: Frame) -> bool:
    """Whether a choice is of the older completions interface, which knows no calls; the policy's "Guessing"."""
    return "text" in choice and "delta" not in choice and "message" not in choice
