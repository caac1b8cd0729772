"""Decides which tenants' inboxes a consumer reads next: fairly, and in bounded steps for any number of tenants.

Harnesses list their tenants themselves, so the list can hold any bytes and any number of names. Only tenants with an
inbox are served. A name without an inbox, and an inbox without an entry for a week, are removed from the list.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Sequence

from ...store.connections.connection import Connection
from ...store.operations.inboxes import InboxStep, forget_inbox

WINDOW = 500
"""Names of the list that one step scans; takes about a millisecond of Redis time."""
ACTIVE = 500
"""Most tenants read in every step; the others are read when the scan of the list reaches them."""
GRACE_S = 10.0
"""Seconds for which a listed name may have no inbox, since a harness may add itself before its first entry."""
IN_GRACE = 10_000
"""Most names without an inbox that are remembered at a time."""
EMPTY_MS = 7 * 86_400_000
"""Milliseconds for which an empty inbox is kept."""
# A tenant is a part of scopes and keys. With their separators in its name, one tenant could reach another's keys.
_TENANT = re.compile(r"[^:/]+")

log = logging.getLogger("toolonce.inbox")


class Tenants:
    """The tenants that one consumer serves.

    Args:
        configured: only these, listed or not; empty: all that ``<ns>:inboxes`` lists.
    """

    def __init__(self, connection: Connection, configured: Sequence[str] = ()) -> None:
        self._connection = connection
        self._configured = list(filter(is_tenant, configured))
        self._is_listed = not configured
        self._cursor = 0
        self._active: dict[str, str] = {}  # tenant -> last entry of its empty inbox, or ""; least recently served first
        self._missing: dict[str, float] = {}  # listed tenant without an inbox -> since when
        self._broken: set[str] = set()

    @property
    def is_through(self) -> bool:
        """Whether the scan of all names has just ended."""
        return self._cursor == 0

    @property
    def empty(self) -> dict[str, str]:
        """Active tenants with an empty inbox -> id of its last entry, after which to wait."""
        return {tenant: last for tenant, last in self._active.items() if last}

    def next(self) -> list[str]:
        """The tenants of this step: the active ones, least recently served first, and the next ones of the scan."""
        walk = self._listed() if self._is_listed else self._walk_configured()
        return list(dict.fromkeys((*self._active, *walk)))

    def note(self, looked_at: Sequence[str], found: InboxStep) -> None:
        """Update the tenants from the result of a step."""
        served = {entry.tenant for entry in found.entries}
        absent = {*found.missing, *found.broken}
        for tenant in looked_at:
            if tenant in absent:
                continue
            self._missing.pop(tenant, None)
            if tenant in served:
                self._active.pop(tenant, None)
            self._active[tenant] = found.empty.get(tenant, "")
        for tenant in (*found.missing, *found.broken):
            self._active.pop(tenant, None)
        while len(self._active) > ACTIVE:
            del self._active[next(iter(self._active))]
        self._tell_broken(found.broken)
        if self._is_listed:
            self._forget(found)

    def note_served(self, found: InboxStep) -> None:
        """Put the tenants whose entries were read behind the others."""
        for entry in found.entries:
            if entry.tenant in self._active:
                self._active[entry.tenant] = self._active.pop(entry.tenant)

    def _listed(self) -> Iterable[str]:
        cursor, names = self._connection.command("SSCAN", self._connection.space.inboxes, self._cursor, "COUNT", WINDOW)
        self._cursor = int(cursor)
        good = {name: name.decode(errors="surrogateescape") for name in names}
        strange = [name for name, text in good.items() if not is_tenant(text)]
        if strange:
            log.warning(
                "%d invalid tenant names are removed from the list of inboxes, the first is %.100a: "
                "a tenant's name is printable UTF-8 without ':' and '/'", len(strange), good[strange[0]],
            )  # fmt: skip
            self._connection.command("SREM", self._connection.space.inboxes, *strange)
        return [text for name, text in good.items() if name not in strange]

    def _walk_configured(self) -> Iterable[str]:
        start = self._cursor
        self._cursor = start + WINDOW if start + WINDOW < len(self._configured) else 0
        return self._configured[start : start + WINDOW]

    def _forget(self, found: InboxStep) -> None:
        now = time.monotonic()
        for tenant in found.missing:
            self._missing.setdefault(tenant, now)
        over = [tenant for tenant in found.missing if self._missing[tenant] <= now - GRACE_S]
        surplus = len(self._missing) - IN_GRACE
        if surplus > 0:
            over += [tenant for tenant in found.missing if tenant not in over][:surplus]
        old = (time.time_ns() // 1_000_000) - EMPTY_MS  # a first check by local time; Redis time decides
        over += [tenant for tenant, last in found.empty.items() if int(last.partition("-")[0]) < old]
        if over:
            self._connection.run(forget_inbox(self._connection.space, over, kept_ms=EMPTY_MS))
            for tenant in over:
                self._missing.pop(tenant, None)
                self._active.pop(tenant, None)

    def _tell_broken(self, broken: dict[str, str]) -> None:
        for tenant, why in broken.items():
            if tenant not in self._broken and len(self._broken) < WINDOW:
                self._broken.add(tenant)
                log.warning("the inbox of tenant %s cannot be read: %s", tenant, why)


def is_tenant(name: str) -> bool:
    return bool(_TENANT.fullmatch(name)) and name.isprintable()
