"""The inbox consumer: entries that harnesses of any language add to ``inbox:<tenant>`` become queued calls.

All consumers form one group. An entry is admitted and acknowledged in one step, so that a consumer can die at any point
and another one continues. An entry that cannot be processed is quarantined with the reason: at once where it cannot be
read, after a few tries where its consumer fails or dies. The tenant comes from the key, never from the entry.
`entry` defines the wire format, and `tenants` decides which tenant is next.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import Any, Unpack

from redis.exceptions import NoPermissionError, ReadOnlyError, RedisError, ResponseError

from ...store.connections.connection import Connection
from ...store.model.errors import CorruptRecord, NoToolsPublished, StoreError, StoreFull, StoreMisuse, StoreUnavailable
from ...store.model.keyring import Keyring
from ...store.model.outcomes import Failure
from ...store.operations.admission import InboxEntry
from ...store.operations.fence_watermark import FenceWatermark
from ...store.operations.inboxes import Bounds, Delivered, InboxStep, Reader, deliver, quarantine
from ...store.schema.validation import Heavy
from ..harness.client import advance
from ..harness.queue_limits import QueueLimits, complete
from ..harness.submission import Step, SubmissionTerms, Submitting
from ..harness.submission_cache import SubmissionCache
from ..turns.errors import StreamError
from .entry import ENTRY_BYTES, read_entry
from .heavy_entries import HeavyEntries, KeptAside
from .tenants import Tenants

GROUP = "toolonce"
BLOCK_S = 1.0
"""Seconds that one read waits; new tenants and a stop are noticed within this time."""
IDLE_MS = 30_000
"""Milliseconds after which the consumer of an unacknowledged entry counts as dead; admission takes milliseconds."""
RETRY_MS = 1_000
"""Seconds after which an entry that waits for room or for a worker is tried again."""
TRIES = 5
"""Deliveries of an entry to consumers that fail or die, before it is quarantined."""
SWEEP_S = 5.0
"""Seconds between two searches for entries of dead consumers."""
_BOUNDS = Bounds(ENTRY_BYTES, step_bytes=16 << 20, entries=8, in_hand=200, mine_ms=RETRY_MS, others_ms=IDLE_MS)
_UNREADABLE = (StreamError, StoreMisuse, CorruptRecord, ValueError, RecursionError)
# Errors about the state of the server. Any other error that it reports is caused by the entry.
_OF_THE_SERVER = ("LOADING", "MISCONF", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN", "BUSY", "NOAUTH", "TRYAGAIN", "OOM")

log = logging.getLogger("toolonce.inbox")


class Consumer:
    """Reads the inboxes of a namespace until it is stopped. One thread; run several for more speed.

    Args:
        name: of this consumer in the group; unique among running ones.
        tenants: only these; by default all that ``<ns>:inboxes`` lists.
        limits: most calls that may wait, see `queue_limits.QueueLimits`; further entries wait in their inbox.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        name: str,
        keyring: Keyring | None = None,
        tenants: tuple[str, ...] = (),
        **limits: Unpack[QueueLimits],
    ) -> None:
        self.limits = complete(limits)
        self._connection = connection
        self._space = connection.space
        self._reader = Reader(GROUP, name)
        self._keyring = keyring if keyring is not None else Keyring.from_environment()
        self._tenants = Tenants(connection, tenants)
        self._cache = SubmissionCache()
        self._watermark = FenceWatermark()
        self._looks_again = True  # a consumer of this name may have died with entries
        self._must_wait = False
        self._sweep_at = 0.0
        self._cut_off: list[Delivered] = []  # undone because the store was away: does not count as a try
        self._heavy = HeavyEntries()
        self._link = connection.dedicated()
        self.admitted = 0
        self.quarantined = 0

    def run(self, stop: threading.Event) -> None:
        """Consume until `stop` is set; survives restarts of the server."""
        while not stop.is_set():
            try:
                self.step()
            except (StoreError, RedisError) as error:
                log.warning("inbox waits: %s", error)
            except Exception:
                log.exception("a step of the inbox consumer failed and will be repeated")
            else:
                continue
            self._looks_again = True  # entries that were delivered and not processed are read again
            stop.wait(BLOCK_S)
        self.close()

    def close(self) -> None:
        self._heavy.close()
        self._link.close()

    def step(self, block_s: float = BLOCK_S) -> int:
        """Read entries once: first those left by dead consumers, then new ones. Returns the number of processed
        entries.
        An entry that waits for room or for a worker does not delay others."""
        self._give_back_cut_off()
        tenants = self._tenants.next()
        done = self._take_validated()
        done += self._take_left_behind(tenants) if self._looks_again else 0
        found = self._deliver(tenants)
        self._tenants.note(tenants, found)
        done += self._take_all(found)
        if self._tenants.is_through:
            self._end_round(block_s if not done else 0)
        return done

    def _take_left_behind(self, tenants: list[str]) -> int:
        found = self._deliver(tenants, again=True)
        self._must_wait = self._must_wait or bool(found.entries)  # there may be more, for the next round
        self._tenants.note_served(found)
        return self._take_all(found)

    def _deliver(self, tenants: list[str], *, again: bool = False) -> InboxStep:
        bounds = replace(_BOUNDS, mine_ms=RETRY_MS, others_ms=IDLE_MS)
        return self._connection.run(deliver(self._space, self._reader, tenants, bounds, again=again))

    def _end_round(self, block_s: float) -> None:
        """After all tenants were read: wait where nothing was found, and search for entries of dead consumers."""
        self._must_wait = self._must_wait or bool(
            self._heavy
        )  # reading them again keeps other consumers from taking them over
        if block_s:
            self._wait(min(block_s, RETRY_MS / 1000) if self._must_wait else block_s)
        is_time = time.monotonic() >= self._sweep_at
        self._looks_again, self._must_wait = is_time or self._must_wait, False
        if is_time:
            self._sweep_at = time.monotonic() + SWEEP_S

    def _wait(self, block_s: float) -> None:
        """Wait until an entry is added to an empty inbox. Reads none."""
        empty = self._tenants.empty
        if not empty:
            time.sleep(block_s)
            return
        keys = map(self._space.inbox, empty)
        ms = max(1, int(block_s * 1000))
        self._link.command("XREAD", "COUNT", 1, "BLOCK", ms, "STREAMS", *keys, *empty.values())

    def _take_all(self, found: InboxStep) -> int:
        done = 0
        for place, delivered in enumerate(found.entries):
            try:
                done += self._take(delivered)
            except (StoreError, RedisError) as error:
                self._cut_off += found.entries[place + 1 :]
                if not self._is_at_fault(error):
                    self._cut_off.append(delivered)
                raise
        return done

    def _take_validated(self) -> int:
        """Continue the entries whose arguments have been validated."""
        done = 0
        validated = self._heavy.take_validated()
        for place, kept in enumerate(validated):
            try:
                done += self._dealt_with(kept.delivered, kept)
            except (StoreError, RedisError) as error:
                self._cut_off += [other.delivered for other in validated[place + 1 :]]
                if not self._is_at_fault(error):
                    self._cut_off.append(kept.delivered)
                raise
        return done

    def _is_at_fault(self, error: Exception) -> bool:
        """Whether this entry caused the error, and not the state of the server."""
        if not isinstance(error, StoreUnavailable):
            return False
        try:
            self._connection.ping()
        except StoreError:
            return False
        return True

    def _take(self, delivered: Delivered) -> bool:
        """Admit or quarantine an entry; False where this consumer keeps it for another try."""
        if self._heavy.keeps(delivered):
            self._give_back([delivered])
            return False
        if delivered.tries > TRIES:
            why = f"tried {TRIES} times; each time its consumer died or lost its connection"
            self._quarantine(self._place(delivered), delivered, why)
            return True
        return self._dealt_with(delivered)

    def _place(self, delivered: Delivered) -> InboxEntry:
        answers = self._space.answers(delivered.tenant, delivered.entry)
        return InboxEntry(self._space.inbox(delivered.tenant), GROUP, delivered.entry, answers)

    def _dealt_with(self, delivered: Delivered, kept: KeptAside | None = None) -> bool:
        """Process an entry, from its beginning or from validation on; a failure means another try or the quarantine."""
        place = self._place(delivered)
        try:
            return self._go_on(delivered, kept) if kept else self._admit(place, delivered)
        except (StoreFull, NoToolsPublished) as error:
            log.warning("inbox entry %s of tenant %s waits: %s", delivered.entry, delivered.tenant, error)
            self._give_back([delivered])
            return False
        except _UNREADABLE as error:
            self._quarantine(place, delivered, str(error))
        except (StoreError, RedisError) as error:
            if isinstance(error, StoreError) or _is_of_the_server(error):
                raise
            return self._failed(place, delivered, error)
        except Exception as error:
            return self._failed(place, delivered, error)
        return True

    def _admit(self, place: InboxEntry, delivered: Delivered) -> bool:
        entry = read_entry(delivered.fields, self._keyring, delivered.tenant, size=delivered.size)
        scope = f"{delivered.tenant}/{entry.scope}"
        terms = SubmissionTerms(
            self._space, scope, delivered.tenant, self._keyring, watermark=self._watermark, **self.limits
        )
        submitting = Submitting(terms, entry.turn_id, entry.calls, entry.intent, entry.ordered, place, not entry.sealed)
        return self._ended(delivered, submitting.steps(self._cache))

    def _go_on(self, delivered: Delivered, kept: KeptAside) -> bool:
        self._note_tries(delivered, delivered.tries)
        return self._ended(delivered, kept.steps, kept.verdict.result())

    def _ended(self, delivered: Delivered, steps: Generator[Step, Any, Any], verdict: Failure | None = None) -> bool:
        """Run the submission; False where validating its arguments takes long, and it continues later."""
        found = advance(self._connection, steps, verdict)
        if not isinstance(found, Heavy):
            self.admitted += 1
            return True
        self._heavy.put(delivered, steps, found)
        self._give_back([delivered])  # not counted as a try, since the next try would deliver the entry alone
        return False

    def _failed(self, place: InboxEntry, delivered: Delivered, error: Exception) -> bool:
        """Handle an unexpected exception. Its text may contain values of the entry, so only its type and place are
        logged."""
        at = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__} at {at.filename.rpartition('/')[2]}:{at.lineno}"
        log.error(
            "inbox entry %s of tenant %s failed, try %d of %d: %s",
            delivered.entry, delivered.tenant, delivered.tries, TRIES, why,
        )  # fmt: skip
        if delivered.tries < TRIES:
            self._must_wait = True
            return False
        self._quarantine(place, delivered, f"tried {TRIES} times; each time it failed: {why}")
        return True

    def _quarantine(self, place: InboxEntry, delivered: Delivered, reason: str) -> None:
        if not self._connection.run(quarantine(self._space, place, reason)):
            return  # it was processed: by another consumer, or by this one, whose answer was lost
        log.warning("inbox entry %s of tenant %s quarantined: %s", delivered.entry, delivered.tenant, reason)
        self.quarantined += 1

    def _give_back_cut_off(self) -> None:
        self._give_back(self._cut_off)
        self._cut_off = []

    def _give_back(self, entries: Iterable[Delivered]) -> None:
        """Keep the entries with this consumer, without counting this delivery as a try."""
        for one in entries:
            self._must_wait = True
            self._note_tries(one, one.tries - 1)

    def _note_tries(self, one: Delivered, tries: int) -> None:
        claim = ("XCLAIM", self._space.inbox(one.tenant), GROUP, self._reader.consumer, 0, one.entry)
        self._connection.command(*claim, "RETRYCOUNT", tries, "JUSTID")


def _is_of_the_server(error: RedisError) -> bool:
    if isinstance(error, (NoPermissionError, ReadOnlyError)) or not isinstance(error, ResponseError):
        return True
    return str(error).startswith(_OF_THE_SERVER)
