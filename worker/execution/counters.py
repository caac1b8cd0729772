"""Counts what one process has done, for heartbeats and logs. Approximate between threads; the truth is in the
store's counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ...store.model.states import State


@dataclass(slots=True)
class Counters:
    """Counts since the start."""

    states: Counter[State] = field(default_factory=Counter)
    retried: int = 0
    interrupted: int = 0
    given_back: int = 0
    refused_jobs: int = 0
    abandoned: int = 0
    """Threads whose handler overran its limit and has not come back."""

    def settled(self, state: State) -> None:
        self.states[state] += 1

    @property
    def succeeded(self) -> int:
        return self.states[State.SUCCEEDED]

    @property
    def failed(self) -> int:
        return sum(self.states.values()) - self.succeeded
