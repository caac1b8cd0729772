"""Inbox entries whose arguments take long to judge: kept aside while a child process judges them, so that the consumer
goes on with the others.

At most one entry of a tenant is judged at a time; its further ones wait in the consumer's hand, and are known by their
ids, so that nothing of them is judged twice.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from ...store.model.outcomes import Failure, Outcome
from ...store.operations.inboxes import Delivered
from ...store.schema.validation import Heavy
from ..harness.submission import Step

MOST = 8
"""Entries that are kept aside at once; each may hold 32 MiB."""
_KNOWN = 10_000
"""Entries that are remembered as heavy; one that is forgotten is found out again in some 60 ms."""
_Steps = Generator[Step, Any, tuple[Outcome, ...]]


@dataclass(frozen=True, slots=True)
class KeptAside:
    """One entry, its submission as far as it got, and the verdict to come."""

    delivered: Delivered
    steps: _Steps
    verdict: Future[Failure | None]


class HeavyEntries:
    """What one consumer keeps aside. Used by its thread alone."""

    def __init__(self) -> None:
        self._judged: dict[str, KeptAside] = {}
        self._waiting: dict[tuple[str, str], None] = {}

    def __bool__(self) -> bool:
        return bool(self._judged)

    def keeps(self, delivered: Delivered) -> bool:
        """Whether this entry is known to be heavy and cannot be gone on with now."""
        held = self._judged.get(delivered.tenant)
        if held is not None and held.delivered.entry == delivered.entry:
            return True
        return (delivered.tenant, delivered.entry) in self._waiting and not self._has_room(delivered.tenant)

    def put(self, delivered: Delivered, steps: _Steps, heavy: Heavy) -> None:
        """Have it judged; where others come first, it is for the time when it is handed out again."""
        if not self._has_room(delivered.tenant):
            steps.close()
            if len(self._waiting) >= _KNOWN:  # entries that other consumers took over stay on this list
                self._waiting.clear()
            self._waiting[delivered.tenant, delivered.entry] = None
            return
        self._waiting.pop((delivered.tenant, delivered.entry), None)
        self._judged[delivered.tenant] = KeptAside(delivered, steps, heavy.start())

    def take_judged(self) -> list[KeptAside]:
        """Those whose verdict has come; they are no longer kept."""
        ready = [kept for kept in self._judged.values() if kept.verdict.done()]
        for kept in ready:
            del self._judged[kept.delivered.tenant]
        return ready

    def close(self) -> None:
        """Give up what is not judged: the entries are still in the consumer's hand."""
        for kept in self._judged.values():
            kept.verdict.cancel()
            kept.steps.close()
        self._judged.clear()

    def _has_room(self, tenant: str) -> bool:
        return tenant not in self._judged and len(self._judged) < MOST
