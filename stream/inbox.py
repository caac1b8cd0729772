"""The inbox consumer: entries that harnesses of any language add to ``inbox:<tenant>`` become queued calls.

One consumer group for all; an entry is admitted and acknowledged in one step, so that a consumer may die anywhere and
another goes on. What cannot be read is parked with its reason. The tenant comes from the key's name, never from the
entry. The wire format is `inbox_entry`'s.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from redis.exceptions import ResponseError

from ..store.admission import InboxEntry
from ..store.connection import Connection
from ..store.errors import KeyringMissing, NoToolsPublished, StoreError, StoreFull
from ..store.inboxes import park
from ..store.keyring import Keyring
from .client import drive
from .errors import StreamError
from .inbox_entry import Unreadable, read_entry
from .submission import SpecCache, Submitting, Terms

GROUP = "toolonce"
BLOCK_S = 1.0
"""How long one read waits; a new tenant is seen, and a stop obeyed, within this time."""
IDLE_MS = 30_000
"""An entry that a consumer has held for longer belongs to a dead one; admission takes milliseconds."""

log = logging.getLogger("toolonce.inbox")


@dataclass(frozen=True, slots=True)
class Delivered:
    """One entry as it was read."""

    tenant: str
    entry: str
    fields: dict[bytes, bytes]


class Consumer:
    """Reads the inboxes of a namespace until it is stopped. One thread; run several for more speed.

    Args:
        name: of this consumer in the group; unique among live ones.
        tenants: only these; by default all that are listed in ``<ns>:inboxes``.
    """

    def __init__(
        self, connection: Connection, *, name: str, keyring: Keyring | None = None, tenants: tuple[str, ...] = ()
    ) -> None:
        self._connection = connection
        self._space = connection.space
        self._name = name
        self._keyring = keyring if keyring is not None else Keyring.from_environment()
        self._tenants = tenants
        self._specs = SpecCache()
        self._grouped: set[str] = set()
        self._owes = True  # a consumer of this name may have died holding entries
        self._link = connection.dedicated()
        self.admitted = 0
        self.parked = 0

    def run(self, stop: threading.Event) -> None:
        """Consume until `stop` is set; survives the server's restart."""
        while not stop.is_set():
            try:
                if not self.step():
                    stop.wait(0.05)
            except StoreError as error:
                log.warning("inbox waits: %s", error)
                self._owes = True  # what was read and not admitted is taken up again
                stop.wait(BLOCK_S)
        self._link.close()

    def step(self, block_s: float = BLOCK_S) -> int:
        """Take what is there, once: first what a dead consumer left, then what is new; the number of entries taken."""
        tenants = self._listed()
        taken = 0
        if self._owes:
            taken += self._take_all(self._read(tenants, "0", None))
            self._owes = False
        taken += self._take_all(self._left_behind(tenants))
        return taken + self._take_all(self._read(tenants, ">", block_s))

    def _take_all(self, deliveries: Iterable[Delivered]) -> int:
        taken = 0
        for taken, delivered in enumerate(deliveries, 1):  # noqa: B007
            self._take(delivered)
        return taken

    def _listed(self) -> list[str]:
        names = self._tenants or sorted(
            name.decode() for name in self._connection.command("SMEMBERS", self._space.inboxes)
        )
        for tenant in names:
            self._ensure_group(tenant)
        return list(names)

    def _ensure_group(self, tenant: str) -> None:
        if tenant in self._grouped:
            return
        try:
            self._connection.command("XGROUP", "CREATE", self._space.inbox(tenant), GROUP, "0", "MKSTREAM")
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
        self._grouped.add(tenant)

    def _left_behind(self, tenants: list[str]) -> Iterator[Delivered]:
        for tenant in tenants:
            reply = self._connection.command(
                "XAUTOCLAIM", self._space.inbox(tenant), GROUP, self._name, IDLE_MS, "0", "COUNT", 10
            )
            yield from _deliveries(tenant, reply[1])

    def _read(self, tenants: list[str], start: str, block_s: float | None) -> Iterator[Delivered]:
        """New entries (start ``>``, waiting for them), or those that this consumer took and did not finish (``0``)."""
        if not tenants:
            return
        keys = [self._space.inbox(tenant) for tenant in tenants]
        wait = ("BLOCK", max(1, int(block_s * 1000))) if block_s is not None else ()
        words = ("XREADGROUP", "GROUP", GROUP, self._name, "COUNT", 32, *wait, "STREAMS")
        reply = self._link.command(*words, *keys, *(start for _ in keys))
        for key, entries in reply or ():
            yield from _deliveries(tenants[keys.index(key.decode())], entries)

    def _take(self, delivered: Delivered) -> None:
        place = InboxEntry(
            self._space.inbox(delivered.tenant), GROUP, delivered.entry,
            self._space.answers(delivered.tenant, delivered.entry),
        )  # fmt: skip
        try:
            entry = read_entry(delivered.fields, self._keyring)
            terms = Terms(self._space, f"{delivered.tenant}/{entry.scope}", delivered.tenant, self._keyring)
            submitting = Submitting(
                terms, entry.turn_id, entry.calls, entry.intent, entry.ordered, place, not entry.sealed
            )
            drive(self._connection, submitting.steps(self._specs))
            self.admitted += 1
        except (Unreadable, StreamError, KeyringMissing) as error:
            self._park(place, delivered, str(error))
        except (StoreFull, NoToolsPublished):
            raise  # stays pending in the group; taken up again once there is room, or a worker

    def _park(self, place: InboxEntry, delivered: Delivered, reason: str) -> None:
        log.warning("inbox entry %s of tenant %s parked: %s", delivered.entry, delivered.tenant, reason)
        self._connection.run(park(self._space, place, delivered.fields, reason))
        self.parked += 1


def _deliveries(tenant: str, entries: list[Any]) -> Iterator[Delivered]:
    for entry_id, flat in entries:
        if flat is not None:
            yield Delivered(tenant, entry_id.decode(), dict(zip(flat[::2], flat[1::2], strict=True)))
