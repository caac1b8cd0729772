"""The inbox consumer: entries that harnesses of any language add to ``inbox:<tenant>`` become queued calls.

One consumer group for all; an entry is admitted and acknowledged in one step, so that a consumer may die anywhere and
another goes on. What cannot be read is parked with its reason. The tenant comes from the key's name, never from the
entry. The wire format is `inbox_entry`'s.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from redis.exceptions import ResponseError

from ..store.admission import InboxEntry
from ..store.connection import Connection
from ..store.errors import CorruptRecord, NoToolsPublished, StoreError, StoreFull, StoreMisuse
from ..store.fence_watermark import FenceWatermark
from ..store.inboxes import park
from ..store.keyring import Keyring
from .client import drive
from .errors import StreamError
from .inbox_entry import read_entry
from .submission import SpecCache, Submitting, Terms

GROUP = "toolonce"
BLOCK_S = 1.0
"""How long one read waits; a new tenant is seen, and a stop obeyed, within this time."""
IDLE_MS = 30_000
"""An entry that a consumer has held for longer belongs to a dead one; admission takes milliseconds."""
QUEUE_LIMIT = 100_000
"""Calls a queue may hold before entries for it wait in their inbox."""
SWEEP_S = 5.0
"""How often the entries of dead consumers are looked for: one command for each tenant."""
# A tenant is the first part of scopes and of keys: with their marks in it, one tenant could name another's.
_TENANT = re.compile(r"[^:/]+")

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
        self._watermark = FenceWatermark()
        self._grouped: set[str] = set()
        self._strange: set[str] = set()
        self._owes = True  # a consumer of this name may have died holding entries
        self._sweep_at = 0.0
        self._link = connection.dedicated()
        self.admitted = 0
        self.parked = 0

    def run(self, stop: threading.Event) -> None:
        """Consume until `stop` is set; survives the server's restart."""
        while not stop.is_set():
            try:
                if not self.step():
                    stop.wait(BLOCK_S if self._owes else 0.05)
            except (StoreError, ResponseError) as error:
                log.warning("inbox waits: %s", error)
                self._grouped.clear()  # the server may have lost its groups
                self._owes = True  # what was read and not admitted is taken up again
                stop.wait(BLOCK_S)
        self.close()

    def close(self) -> None:
        self._link.close()

    def step(self, block_s: float = BLOCK_S) -> int:
        """Take what is there, once: first what was left behind, then what is new; the number of entries that are
        dealt with. One that must wait, for room or for a worker, holds up no other."""
        tenants = self._listed()
        owed, self._owes = self._owes, False
        done = 0
        for delivered in self._read(tenants, "0", None) if owed else ():
            done += self._take(delivered)
        for delivered in self._left_behind(tenants):
            done += self._take(delivered)
        for delivered in self._read(tenants, ">", block_s):
            done += self._take(delivered)
        return done

    def _listed(self) -> list[str]:
        listed = self._tenants or sorted(
            name.decode(errors="surrogateescape") for name in self._connection.command("SMEMBERS", self._space.inboxes)
        )
        return [tenant for tenant in listed if self._is_served(tenant) and self._has_group(tenant)]

    def _is_served(self, tenant: str) -> bool:
        """Harnesses list tenants, so any bytes may come; they must not stop the others, nor reach them."""
        if _TENANT.fullmatch(tenant) and tenant.isprintable():
            return True
        if tenant not in self._strange:
            self._strange.add(tenant)
            log.warning(
                "the inbox of tenant %a is not read: a tenant's name has no ':', no '/' and no odd bytes", tenant
            )
        return False

    def _has_group(self, tenant: str) -> bool:
        if tenant in self._grouped:
            return True
        try:
            self._connection.command("XGROUP", "CREATE", self._space.inbox(tenant), GROUP, "0", "MKSTREAM")
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                log.warning("the inbox of tenant %s cannot be read: %s", tenant, error)
                return False
        self._grouped.add(tenant)
        return True

    def _left_behind(self, tenants: list[str]) -> Iterator[Delivered]:
        if time.monotonic() < self._sweep_at:
            return
        self._sweep_at = time.monotonic() + SWEEP_S
        for tenant in tenants:
            reply = self._connection.command(
                "XAUTOCLAIM", self._space.inbox(tenant), GROUP, self._name, IDLE_MS, "0", "COUNT", 100
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

    def _take(self, delivered: Delivered) -> bool:
        """Admit or park; False where the entry stays with this consumer, to be taken up again."""
        place = InboxEntry(
            self._space.inbox(delivered.tenant), GROUP, delivered.entry,
            self._space.answers(delivered.tenant, delivered.entry),
        )  # fmt: skip
        try:
            self._admit(place, delivered)
        except (StoreFull, NoToolsPublished) as error:
            log.warning("inbox entry %s of tenant %s waits: %s", delivered.entry, delivered.tenant, error)
            self._owes = True
            return False
        except (StreamError, StoreMisuse, CorruptRecord, ValueError, RecursionError) as error:
            self._park(place, delivered, str(error))
        return True

    def _admit(self, place: InboxEntry, delivered: Delivered) -> None:
        entry = read_entry(delivered.fields, self._keyring)
        scope = f"{delivered.tenant}/{entry.scope}"
        terms = Terms(self._space, scope, delivered.tenant, self._keyring, QUEUE_LIMIT, watermark=self._watermark)
        submitting = Submitting(terms, entry.turn_id, entry.calls, entry.intent, entry.ordered, place, not entry.sealed)
        drive(self._connection, submitting.steps(self._specs))
        self.admitted += 1

    def _park(self, place: InboxEntry, delivered: Delivered, reason: str) -> None:
        if not self._connection.run(park(self._space, place, delivered.fields, reason)):
            return  # another consumer took it over and has dealt with it; or we have, and did not hear the answer
        log.warning("inbox entry %s of tenant %s parked: %s", delivered.entry, delivered.tenant, reason)
        self.parked += 1


def _deliveries(tenant: str, entries: list[Any]) -> Iterator[Delivered]:
    for entry_id, flat in entries:
        if flat is not None:
            yield Delivered(tenant, entry_id.decode(), dict(zip(flat[::2], flat[1::2], strict=True)))
