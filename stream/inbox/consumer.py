"""The inbox consumer: entries that harnesses of any language add to ``inbox:<tenant>`` become queued calls.

One consumer group for all; an entry is admitted and acknowledged in one step, so that a consumer may die anywhere and
another goes on. An entry that cannot be dealt with is quarantined with its reason: at once where it cannot be read,
after a few tries where it makes its consumer fail or die. The tenant comes from the key's name, never from the entry.
The wire format is `inbox_entry`'s; whose turn it is decides `inbox_tenants`.
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
from ..harness.submission import SpecCache, Step, SubmissionTerms, Submitting
from ..turns.errors import StreamError
from .entry import ENTRY_BYTES, read_entry
from .heavy_entries import HeavyEntries, KeptAside
from .tenants import Tenants

GROUP = "toolonce"
BLOCK_S = 1.0
"""How long one read waits; a new tenant is seen, and a stop obeyed, within this time."""
IDLE_MS = 30_000
"""An entry that a consumer has held for longer belongs to a dead one; admission takes milliseconds."""
RETRY_MS = 1_000
"""After which an entry that must wait, for room or for a worker, is tried again."""
TRIES = 5
"""Times that an entry is handed out to consumers that fail or die of it, before it is quarantined."""
SWEEP_S = 5.0
"""How often the entries of dead consumers are looked for."""
_BOUNDS = Bounds(ENTRY_BYTES, step_bytes=16 << 20, entries=8, in_hand=200, mine_ms=RETRY_MS, others_ms=IDLE_MS)
_UNREADABLE = (StreamError, StoreMisuse, CorruptRecord, ValueError, RecursionError)
# What a server says of itself, whatever it was asked; everything else that it refuses is about the entry.
_OF_THE_SERVER = ("LOADING", "MISCONF", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN", "BUSY", "NOAUTH", "TRYAGAIN", "OOM")

log = logging.getLogger("toolonce.inbox")


class Consumer:
    """Reads the inboxes of a namespace until it is stopped. One thread; run several for more speed.

    Args:
        name: of this consumer in the group; unique among live ones.
        tenants: only these; by default all that are listed in ``<ns>:inboxes``.
        limits: most calls that may wait, see `queue_limits.QueueLimits`; beyond them entries wait in their inbox.
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
        self._specs = SpecCache()
        self._watermark = FenceWatermark()
        self._looks_again = True  # a consumer of this name may have died holding entries
        self._must_wait = False
        self._sweep_at = 0.0
        self._cut_off: list[Delivered] = []  # in hand when the store went away: not their fault
        self._heavy = HeavyEntries()
        self._link = connection.dedicated()
        self.admitted = 0
        self.quarantined = 0

    def run(self, stop: threading.Event) -> None:
        """Consume until `stop` is set; survives the server's restart."""
        while not stop.is_set():
            try:
                self.step()
            except (StoreError, RedisError) as error:
                log.warning("inbox waits: %s", error)
            except Exception:
                log.exception("a step of the inbox consumer failed; the next one tries again")
            else:
                continue
            self._looks_again = True  # what was handed out and not dealt with is taken up again
            stop.wait(BLOCK_S)
        self.close()

    def close(self) -> None:
        self._heavy.close()
        self._link.close()

    def step(self, block_s: float = BLOCK_S) -> int:
        """Take what is there, once: first what was left behind, then what is new; the number of entries that are
        dealt with. One that must wait, for room or for a worker, holds up no other."""
        self._give_back_cut_off()
        tenants = self._tenants.next()
        done = self._take_judged()
        done += self._take_left_behind(tenants) if self._looks_again else 0
        found = self._deliver(tenants)
        self._tenants.note(tenants, found)
        done += self._take_all(found)
        if self._tenants.is_through:
            self._end_round(block_s if not done else 0)
        return done

    def _take_left_behind(self, tenants: list[str]) -> int:
        found = self._deliver(tenants, again=True)
        self._must_wait = self._must_wait or bool(found.entries)  # there may be more: look again in the next round
        self._tenants.note_served(found)
        return self._take_all(found)

    def _deliver(self, tenants: list[str], *, again: bool = False) -> InboxStep:
        bounds = replace(_BOUNDS, mine_ms=RETRY_MS, others_ms=IDLE_MS)
        return self._connection.run(deliver(self._space, self._reader, tenants, bounds, again=again))

    def _end_round(self, block_s: float) -> None:
        """All names were looked at: wait for more where there was nothing, and look for what was left behind."""
        self._must_wait = self._must_wait or bool(self._heavy)  # looked at again, no other consumer takes them over
        if block_s:
            self._wait(min(block_s, RETRY_MS / 1000) if self._must_wait else block_s)
        is_time = time.monotonic() >= self._sweep_at
        self._looks_again, self._must_wait = is_time or self._must_wait, False
        if is_time:
            self._sweep_at = time.monotonic() + SWEEP_S

    def _wait(self, block_s: float) -> None:
        """Until an entry comes into an inbox that was empty. Nothing is taken here."""
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

    def _take_judged(self) -> int:
        """Go on with the entries whose arguments are judged by now."""
        done = 0
        judged = self._heavy.take_judged()
        for place, kept in enumerate(judged):
            try:
                done += self._dealt_with(kept.delivered, kept)
            except (StoreError, RedisError) as error:
                self._cut_off += [other.delivered for other in judged[place + 1 :]]
                if not self._is_at_fault(error):
                    self._cut_off.append(kept.delivered)
                raise
        return done

    def _is_at_fault(self, error: Exception) -> bool:
        """Whether the server is well, and only would not take what this entry asked for."""
        if not isinstance(error, StoreUnavailable):
            return False
        try:
            self._connection.ping()
        except StoreError:
            return False
        return True

    def _take(self, delivered: Delivered) -> bool:
        """Admit or quarantine; False where the entry stays with this consumer, to be taken up again."""
        if self._heavy.keeps(delivered):
            self._give_back([delivered])
            return False
        if delivered.tries > TRIES:
            why = f"tried {TRIES} times, and each time its consumer died or was cut off"
            self._quarantine(self._place(delivered), delivered, why)
            return True
        return self._dealt_with(delivered)

    def _place(self, delivered: Delivered) -> InboxEntry:
        answers = self._space.answers(delivered.tenant, delivered.entry)
        return InboxEntry(self._space.inbox(delivered.tenant), GROUP, delivered.entry, answers)

    def _dealt_with(self, delivered: Delivered, kept: KeptAside | None = None) -> bool:
        """Admit it, or go on with what was kept aside; what fails is quarantined, or tried again."""
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
        return self._ended(delivered, submitting.steps(self._specs))

    def _go_on(self, delivered: Delivered, kept: KeptAside) -> bool:
        self._note_tries(delivered, delivered.tries)
        return self._ended(delivered, kept.steps, kept.verdict.result())

    def _ended(self, delivered: Delivered, steps: Generator[Step, Any, Any], verdict: Failure | None = None) -> bool:
        """Run the submission; False where its arguments take long to judge, and it goes on once they are."""
        found = advance(self._connection, steps, verdict)
        if not isinstance(found, Heavy):
            self.admitted += 1
            return True
        self._heavy.put(delivered, steps, found)
        self._give_back([delivered])  # uncounted while it waits: one that counts is handed out with nothing beside it
        return False

    def _failed(self, place: InboxEntry, delivered: Delivered, error: Exception) -> bool:
        """Something that nobody foresaw. Its text may hold the entry's values, so that only its place is told."""
        at = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__} at {at.filename.rpartition('/')[2]}:{at.lineno}"
        log.error(
            "inbox entry %s of tenant %s failed, try %d of %d: %s",
            delivered.entry, delivered.tenant, delivered.tries, TRIES, why,
        )  # fmt: skip
        if delivered.tries < TRIES:
            self._must_wait = True
            return False
        self._quarantine(place, delivered, f"tried {TRIES} times, and failed each time: {why}")
        return True

    def _quarantine(self, place: InboxEntry, delivered: Delivered, reason: str) -> None:
        if not self._connection.run(quarantine(self._space, place, reason)):
            return  # another consumer took it over and has dealt with it; or we have, and did not hear the answer
        log.warning("inbox entry %s of tenant %s quarantined: %s", delivered.entry, delivered.tenant, reason)
        self.quarantined += 1

    def _give_back_cut_off(self) -> None:
        self._give_back(self._cut_off)
        self._cut_off = []

    def _give_back(self, entries: Iterable[Delivered]) -> None:
        """They stay in this consumer's hand, and this hand-out does not count."""
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
