"""What one process has done, for heartbeats and logs. Approximate between threads; the truth is in the store."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from ...store.model.states import State
from ...store.operations.runs import Run


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

    newly_settled: deque[Run] = field(default_factory=lambda: deque(maxlen=100_000))
    """Since the last heartbeat, which takes them; bounded, since it may not come."""

    def settled(self, run: Run, state: State) -> None:
        self.states[state] += 1
        self.newly_settled.append(run)

    @property
    def succeeded(self) -> int:
        return self.states[State.SUCCEEDED]

    @property
    def failed(self) -> int:
        return sum(self.states.values()) - self.succeeded
