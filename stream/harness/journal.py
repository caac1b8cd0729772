"""The journal: the steps of a conversation, kept in the store so that another process can continue it.

Decides the form of entries, and that they are sealed where there are keys. Must not know providers; runs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal

from ...store.model.errors import KeyringMissing
from ...store.model.specs import ToolSpec
from ...store.operations import journal
from ...store.operations.operation import Operation
from ...store.operations.tools import published
from ..replies.protocol import Message
from ..turns.turn import RejectedCall, ToolCall
from .submission import SubmissionTerms

StepKind = Literal["history", "question", "turn", "paused", "results"]
_SEALED = "sealed:"


@dataclass(frozen=True, slots=True)
class JournalStep:
    """One step (earlier history, question, turn, or results): what it adds to the history, and for a turn its calls.

    Attributes:
        step: of a question, the id that the caller gave it.
        turn_id: of a turn, the id under which its calls are submitted. It is random and stored, so that a conversation
            that starts again in this scope never finds calls of an older one.
        assistant, order: of a turn, from its `TurnResult`; its messages are built from them.
        reply_ids: of results, the id that admission chose for each call of the turn before.
        text: of a turn, its visible text; of results, the message for the user where the loop ends with them.
    """

    kind: StepKind
    messages: tuple[Message, ...]
    calls: tuple[ToolCall | RejectedCall, ...] = ()
    text: str = ""
    step: str = ""
    turn_id: str = ""
    assistant: tuple[Message, ...] = ()
    order: tuple[int, ...] = ()
    reply_ids: tuple[str | None, ...] = ()


Operations = Generator[Operation[Any], Any, None]


class Journal:
    """The entries of one scope's conversation that this object has read or written. Sans-IO: the methods yield store
    operations and are sent their answers."""

    def __init__(self, terms: SubmissionTerms) -> None:
        self._terms = terms
        self.entries: list[JournalStep] = []

    def read(self) -> Operations:
        texts = yield journal.read(self._terms.space, self._terms.scope)
        self.entries = [self._open(text) for text in texts]

    def add(self, entry: JournalStep) -> Operations:
        """Write the next entry. Where another harness wrote first, its entries count, and are read instead.

        Raises:
            KeyringMissing: calls of the entry have secret fields, and there are no keys to seal them.
        """
        if entry.calls and not self._terms.keyring.keys:
            self._check_secrets(entry.calls, (yield published(self._terms.space)).tools)
        text = self._seal(entry)
        stands = yield journal.write(self._terms.space, self._terms.scope, len(self.entries), text)
        if stands == text:
            self.entries.append(entry)
        else:
            yield from self.read()

    def has_step(self, step: str) -> bool:
        return any(entry.kind == "question" and entry.step == step for entry in self.entries)

    def end_of(self, step: str) -> JournalStep | None:
        """The last entry of an earlier step; None where it is the last step, or unknown."""
        asked = [number for number, entry in enumerate(self.entries) if entry.kind == "question"]
        return next((self.entries[after - 1] for one, after in pairwise(asked) if self.entries[one].step == step), None)

    def _seal(self, entry: JournalStep) -> str:
        text = json.dumps({**asdict(entry), "calls": [asdict(call) for call in entry.calls]})
        if self._terms.keyring.keys:
            return _SEALED + self._terms.keyring.encrypt(text)
        return text

    def _check_secrets(self, calls: Sequence[ToolCall | RejectedCall], tools: Mapping[str, ToolSpec]) -> None:
        if any(call.name in tools and tools[call.name].secret for call in calls):
            raise KeyringMissing("a call has secret fields: set TOOLONCE_KEYS where the conversation runs")

    def _open(self, text: str) -> JournalStep:
        if text.startswith(_SEALED):
            text = self._terms.keyring.decrypt(text.removeprefix(_SEALED))
        stored = json.loads(text)
        calls = tuple(_call_of(call) for call in stored.pop("calls"))
        lists: dict[str, Any] = {
            name: tuple(stored.pop(name)) for name in ("messages", "assistant", "order", "reply_ids")
        }
        return JournalStep(calls=calls, **lists, **stored)


def _call_of(stored: dict[str, Any]) -> ToolCall | RejectedCall:
    return RejectedCall(**stored) if "reason" in stored else ToolCall(**stored)
