"""Reads Google Interactions: steps that start, grow and stop, and one status at the end.

Decides what a step means, and which statuses let calls run. Must not know bytes or argument JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...turns.assembly import AssembledCalls
from ...turns.reader import DialectReader, Frame, mapping, mappings, text, without
from ...turns.turn import Dialect, TurnOutcome
from ...turns.turn_builder import OpenCall, OpenTurn
from ...wire.arguments import joined
from ...wire.frames import error_in

STATUSES: dict[str, TurnOutcome] = {
    "requires_action": "completed",
    "completed": "completed",
    "incomplete": "truncated",
    "requires_continuation": "truncated",
    "budget_exceeded": "truncated",
    "failed": "failed",
    "cancelled": "aborted",
}


class _Step:
    """One step: its start, its deltas, and its call where it is one for the harness."""

    __slots__ = ("call", "deltas", "start", "stopped")

    def __init__(self, start: Frame, call: OpenCall | None) -> None:
        self.start = start
        self.call = call
        self.stopped = False
        self.deltas: list[Frame] = []

    def echo(self) -> Frame:
        """The step with everything that its deltas added: text as content, other members by name."""
        step = dict(self.start)
        content: list[Any] = [*mappings(step.get("content"))]
        summary: list[Any] = [*mappings(step.get("summary"))]
        texts: list[str] = []
        for delta in self.deltas:
            if delta.get("type") == "text":
                texts.append(text(delta.get("text")))
            elif delta.get("type") == "thought_summary":
                summary.append(mapping(delta.get("content")))
            else:
                step |= without(delta, "type")
        if texts:
            content.append({"type": "text", "text": joined(texts)})
        return step | ({"content": content} if content else {}) | ({"summary": summary} if summary else {})


class InteractionsReader(DialectReader):
    dialect: ClassVar[Dialect] = "google-interactions"

    def __init__(self, turn: OpenTurn) -> None:
        super().__init__(turn)
        self._steps: dict[int, _Step] = {}
        self._status: str | None = None

    def read(self, kind: str, frame: Frame) -> None:
        handler = self._HANDLERS.get(kind)
        if handler is None:
            return
        if self.turn.released and kind != "interaction.status_update":
            self.turn.violate(f"{kind} after interaction.completed")
        handler(self, frame)

    def body(self, document: Frame) -> None:
        self._known(document)
        for index, start in enumerate(mappings(document.get("steps"))):
            step = self._open(index, start)
            step.stopped = True
        self._terminal(document.get("status"))

    def contradiction(self, calls: int) -> str | None:
        if self._status == "requires_action" and calls == 0:
            return "requires_action without a call"
        if self._status == "completed" and calls:
            return "status completed together with calls"
        return None

    def assistant(self, assembled: AssembledCalls) -> list[Frame]:
        steps = []
        for _, step in sorted(self._steps.items()):
            if step.call is None:
                steps.append(step.echo())
            elif step.call in assembled:
                steps.append({**step.start, **step.call.echo, "arguments": assembled.value_of(step.call)})
        return steps

    def shown(self) -> list[OpenCall]:
        return [step.call for _, step in sorted(self._steps.items()) if step.call is not None]

    def _known(self, interaction: Frame) -> None:
        self.turn.identify(interaction.get("id"))
        self.turn.add_usage(interaction.get("usage"))
        if error := error_in(interaction):
            self.turn.fail(error)

    def _created(self, frame: Frame) -> None:
        self._known(mapping(frame.get("interaction")))

    def _updated(self, frame: Frame) -> None:
        self.turn.identify(frame.get("interaction_id"))

    def _start(self, frame: Frame) -> None:
        index = frame.get("index")
        if type(index) is not int or index in self._steps:
            self.turn.violate("a step without an index of its own")
            return
        if not (start := self.object_in(frame, "step")):
            self.turn.violate("a step without its content")
        self._open(index, start)

    def _open(self, index: int, start: Frame) -> _Step:
        call = None
        if start.get("type") == "function_call":
            call = self.turn.open_call()
            call.identify(start.get("id"))
            call.rename(start.get("name"))
            call.echo = without(start, "type", "id", "name", "arguments")
            call.open_with(start.get("arguments"))
        step = self._steps[index] = _Step(start, call)
        if start.get("type") == "model_output":
            for part in mappings(start.get("content")):
                self._say(part)
        return step

    def _open_step(self, frame: Frame) -> _Step | None:
        index = frame.get("index")
        step = self._steps.get(index) if type(index) is int else None
        if step is None or step.stopped:
            self.turn.violate("a fragment or a stop without its open step")
            return None
        return step

    def _delta(self, frame: Frame) -> None:
        step = self._open_step(frame)
        if step is None:
            return
        delta = self.object_in(frame, "delta")
        if step.call is None:
            step.deltas.append(delta)
            if step.start.get("type") == "model_output":
                self._say(delta)
        elif delta.get("type") == "arguments_delta":
            step.call.add(delta.get("arguments"))
        elif "arguments" in delta or delta.get("type") is None:
            self.turn.violate("arguments in a delta of another type")
        else:
            step.call.echo |= without(delta, "type")

    def _say(self, part: Frame) -> None:
        if part.get("type") == "text":
            self.turn.add_text(part.get("text"))

    def _stop(self, frame: Frame) -> None:
        step = self._open_step(frame)
        if step is None:
            return
        step.stopped = True
        if step.call is not None:
            step.call.finish()

    def _completed(self, frame: Frame) -> None:
        interaction = mapping(frame.get("interaction"))
        self._known(interaction)
        if not all(step.stopped for step in self._steps.values()):
            self.turn.violate("a step is still open at interaction.completed")
        self._terminal(interaction.get("status"))

    def _terminal(self, status: object) -> None:
        self.turn.released = True
        self._status = text(status) or str(status)
        self.turn.end(STATUSES.get(self._status, "withheld"), self._status)

    _HANDLERS: ClassVar[dict[str, Callable[[InteractionsReader, Frame], None]]] = {
        "step.delta": _delta,
        "step.start": _start,
        "step.stop": _stop,
        "interaction.created": _created,
        "interaction.status_update": _updated,
        "interaction.completed": _completed,
    }
    kinds = frozenset(_HANDLERS)


def detect(kind: str, frame: Frame) -> bool:
    """Whether this frame or whole response can only be of this dialect."""
    own = kind.startswith(("interaction.", "step."))
    return own or frame.get("object") == "interaction" or "steps" in frame
