"""What a conversation has come to, kept in the store so that another process can go on with it.

Decides the form of entries and that they are sealed where there are keys. Knows no provider and runs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal

from ...store.model.errors import KeyringMissing
from ...store.operations import journal
from ...store.operations.tools import published
from ..replies.protocol import Message
from ..turns.turn import RejectedCall, ToolCall
from .client import Client

StepKind = Literal["question", "turn", "paused", "results"]
_SEALED = "sealed:"


@dataclass(frozen=True, slots=True)
class JournalStep:
    """One step: what it adds to the history, and for a turn its calls.

    Attributes:
        step: of a question, the asker's own id of it.
        turn_id: of a turn, what its calls are submitted under; drawn once and kept here, so that a conversation that
            is begun anew in this scope never finds the calls of an older one.
        assistant, order: of a turn, those of its `TurnResult`; its messages are written from them.
        reply_ids: of results, for each call of the turn before, what admission chose in the place of its id.
        text: of a turn, what it says; of results, what the user is told where the model is not asked again.
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


class Journal:
    """The entries of one scope's conversation, as far as they were read or written here."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._terms = client.terms
        self.entries: list[JournalStep] = []

    def read(self) -> None:
        texts = self._client.run(journal.read(self._terms.space, self._terms.scope))
        self.entries = [self._open(text) for text in texts]

    def add(self, entry: JournalStep) -> None:
        """Write the next entry. Where another harness wrote first, its entries stand, and are read.

        Raises:
            KeyringMissing: its calls have secret fields, and there are no keys to seal them with.
        """
        text = self._seal(entry)
        stands = self._client.run(journal.write(self._terms.space, self._terms.scope, len(self.entries), text))
        if stands == text:
            self.entries.append(entry)
        else:
            self.read()

    def has_step(self, step: str) -> bool:
        return any(entry.kind == "question" and entry.step == step for entry in self.entries)

    def end_of(self, step: str) -> JournalStep | None:
        """The last entry of an earlier step; None for the step that is last, or where there is none."""
        asked = [number for number, entry in enumerate(self.entries) if entry.kind == "question"]
        return next((self.entries[after - 1] for one, after in pairwise(asked) if self.entries[one].step == step), None)

    def _seal(self, entry: JournalStep) -> str:
        text = json.dumps({**asdict(entry), "calls": [asdict(call) for call in entry.calls]})
        if self._terms.keyring.keys:
            return _SEALED + self._terms.keyring.encrypt(text)
        self._check_secrets(entry.calls)
        return text

    def _check_secrets(self, calls: Sequence[ToolCall | RejectedCall]) -> None:
        tools = self._client.run(published(self._terms.space)).tools if calls else {}
        if any(call.name in tools and tools[call.name].secret for call in calls):
            raise KeyringMissing("a call has secret fields: set TOOLONCE_KEYS where its conversation is kept")

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
