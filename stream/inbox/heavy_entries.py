"""Inbox entries whose arguments take long to validate: set aside while a child process validates them, so that the
consumer continues with the others.

At most one entry of a tenant is validated at a time. Its further entries stay with the consumer and are remembered by
their ids, so that none is validated twice.
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
"""Most entries set aside at a time; each can have 32 MiB."""
_KNOWN = 10_000
"""Most entries remembered as heavy; to find out about a forgotten one again takes about 60 ms."""
_Steps = Generator[Step, Any, tuple[Outcome, ...]]


@dataclass(frozen=True, slots=True)
class KeptAside:
    """One entry, its unfinished submission, and the result of the validation to come."""

    delivered: Delivered
    steps: _Steps
    verdict: Future[Failure | None]


class HeavyEntries:
    """The entries that one consumer has set aside. Used by the consumer's thread only."""

    def __init__(self) -> None:
        self._validating: dict[str, KeptAside] = {}
        self._waiting: dict[tuple[str, str], None] = {}

    def __bool__(self) -> bool:
        return bool(self._validating)

    def keeps(self, delivered: Delivered) -> bool:
        """Whether this entry is known to be heavy and cannot continue now."""
        held = self._validating.get(delivered.tenant)
        if held is not None and held.delivered.entry == delivered.entry:
            return True
        return (delivered.tenant, delivered.entry) in self._waiting and not self._has_room(delivered.tenant)

    def put(self, delivered: Delivered, steps: _Steps, heavy: Heavy) -> None:
        """Start to validate an entry, or remember it where another entry of the tenant comes first."""
        if not self._has_room(delivered.tenant):
            steps.close()
            if len(self._waiting) >= _KNOWN:  # the list also keeps entries that other consumers took over
                self._waiting.clear()
            self._waiting[delivered.tenant, delivered.entry] = None
            return
        self._waiting.pop((delivered.tenant, delivered.entry), None)
        self._validating[delivered.tenant] = KeptAside(delivered, steps, heavy.start())

    def take_validated(self) -> list[KeptAside]:
        """Remove and return the entries whose validation has ended."""
        ready = [kept for kept in self._validating.values() if kept.verdict.done()]
        for kept in ready:
            del self._validating[kept.delivered.tenant]
        return ready

    def close(self) -> None:
        """Stop validating; the entries stay with the consumer."""
        for kept in self._validating.values():
            kept.verdict.cancel()
            kept.steps.close()
        self._validating.clear()

    def _has_room(self, tenant: str) -> bool:
        return tenant not in self._validating and len(self._validating) < MOST
