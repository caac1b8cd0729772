"""Chaos: harnesses submit calls of all kinds while workers and the server are killed, and tools, a queue and a tenant
are paused and resumed, at random; then the effects are counted, and every call that was admitted is asked for.

`python -m tests.crash.chaos --seconds 120`. The last line is ``calls N, kills K, duplicates D, lost L, unknown U``; the
exit code is 1 unless D and L are 0 and U is at most K times the slots of all workers.

With ``--partitions`` the store is a primary with two replicas and Sentinels, the workers need all replicas, and in
place of a server's death the network is divided for a while; a divided network counts as a kill.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.crash.ledger import CrashLedger
from tests.support.crash.process_starter import ProcessStarter, StartedProcess
from tests.support.crash.tools import KINDS, VARIABLE, crowd
from tests.support.servers.partition import Divided
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.store.model.errors import StoreError
from toolonce.store.model.outcomes import Outcome
from toolonce.store.model.states import State
from toolonce.store.operations import queries
from toolonce.store.operations.controls import pause, resume
from toolonce.store.operations.operation import Invocation
from toolonce.store.operations.operators import Actor
from toolonce.store.operations.queries import Stats
from toolonce.store.operations.tools import publish
from toolonce.stream.harness.batch import Batch
from toolonce.stream.harness.client import Client
from toolonce.stream.turns.turn import ToolCall

NAMESPACE = "chaos"
WORKERS, SLOTS, HARNESSES = 3, 4, 6
LEASE_MS = 1_000
TAKES_MS = 40
"""The work of a call. Most kills find handlers inside, before their effect or after it."""
PAUSES_S = (0.1, 0.8)
SERVER_SHARE = 0.2
"""Of the kills; the others hit workers."""
REPEATED_SHARE = 0.2
"""Of the turns; they are submitted again while they run."""
PAUSED_SHARE = 0.3
"""Of the kills; before each of those a person pauses or resumes something."""
PAUSABLE = ("tool:mutating", "tool:begins", "tool:read", "queue:default", "tenant:tenant-0")
REST_S = 60
"""How long the calls may take to come to rest once the killing has ended."""
DIVIDED_S = (1.0, 4.0)
"""How long the network is divided: a replica is promoted after about one second."""
_TRANSIENT = (State.HELD, State.QUEUED, State.RUNNING)


@dataclass(frozen=True, slots=True)
class ChaosCounters:
    """What the last line says."""

    calls: int
    kills: int
    duplicates: int
    lost: int
    unknown: int

    def __str__(self) -> str:
        counts = (f"{name} {getattr(self, name)}" for name in ("calls", "kills", "duplicates", "lost", "unknown"))
        return ", ".join(counts)

    @property
    def is_good(self) -> bool:
        return not self.duplicates and not self.lost and self.unknown <= self.kills * WORKERS * SLOTS


class ChaosHarness(threading.Thread):
    """Submits turns, one after the other, and asks again until it has an answer."""

    def __init__(self, url: str, scope: str, ended: threading.Event, seed: int, *, durable: bool = False) -> None:
        super().__init__(name=scope)
        self.client = Client(url, scope=scope, namespace=NAMESPACE)
        self.turns: list[str] = []
        self._ended = ended
        self._random = random.Random(seed)
        self._durable = durable

    def run(self) -> None:
        while not self._ended.is_set():
            turn_id = f"turn-{len(self.turns)}"
            self.turns.append(turn_id)
            batch = self._submit(turn_id)
            while self._durable and not self._is_safe(batch):
                batch = self._submit(turn_id)
            if self._random.random() < REPEATED_SHARE:
                batch = self._submit(turn_id)
            with suppress(StoreError):
                batch.wait(timeout=2)

    def _is_safe(self, batch: Batch) -> bool:
        """Whether no failover can forget the calls; else they are submitted again."""
        with suppress(StoreError):
            return all(outcome.is_durable for outcome in batch.wait(timeout=0, durable=True))
        return False

    def outcomes(self) -> Iterator[Outcome]:
        """What is stored now about each call that this harness had an answer for."""
        for turn_id in self.turns:
            yield from self.client.batch(turn_id).outcomes

    def _submit(self, turn_id: str) -> Batch:
        calls = [
            ToolCall(kind, {"lane": turn_id, "how": {"takes_ms": TAKES_MS}}, f"call_{n}", "function", n)
            for n, kind in enumerate(KINDS)
        ]
        while True:  # as long as it takes: a turn that was begun is finished
            with suppress(StoreError):
                return self.client.submit_calls(calls, turn_id=turn_id)


class Chaos:
    """One run: a server, workers that are replaced when they are killed, and harnesses that never give up."""

    def __init__(self, starter: ProcessStarter, folder: Path, seed: int, *, partitions: bool = False) -> None:
        self._starter = starter
        self._random = random.Random(seed)
        self._ended = threading.Event()
        self._stack = ExitStack()
        self._place = self._stack.enter_context(Divided(far=2, through="sentinel")) if partitions else None
        self._server = None if partitions else self._stack.enter_context(RealServer())
        self._urls = self._reached_by()
        url = self._urls[-1]
        self._ledger = CrashLedger.create(folder / "ledger")
        self._workers: list[StartedProcess] = []
        self._kills = 0
        self._client = Client(url, scope="chaos", namespace=NAMESPACE)
        self._harnesses = [
            ChaosHarness(url, f"tenant-{n}/talk", self._ended, seed + n, durable=partitions) for n in range(HARNESSES)
        ]

    def run(self, seconds: float) -> ChaosCounters:
        """Let harnesses submit and the killer kill for so long, wait until all is at rest, and count."""
        self._client.run(publish(self._client.terms.space, crowd.specs()))
        self._workers = [self._worker(place) for place in range(WORKERS)]
        with self._submitting():
            self._kill_until(time.monotonic() + seconds)
            wait_until(self._resume_all, description="nothing is paused any more")
        with suppress(AssertionError):  # what does not come to rest is counted as lost
            wait_until(self._is_at_rest, REST_S)
        return self._count()

    def close(self) -> None:
        for worker in self._workers:
            worker.kill9()
        for client in (self._client, *(harness.client for harness in self._harnesses)):
            client.close()
        self._stack.close()

    def _reached_by(self) -> tuple[str, ...]:
        """The URLs of the workers in turn; the last one is for harnesses, too."""
        if self._place:
            return (self._place.url_cut_off, self._place.url_majority)
        assert self._server
        return (self._server.url,)

    def _worker(self, place: int) -> StartedProcess:
        words = ("work", "--tools", "tests.support.crash.tools:crowd", "--redis", self._urls[place % len(self._urls)],
                 "--namespace", NAMESPACE, "--lease", f"{LEASE_MS}ms", "--concurrency", str(SLOTS),
                 "--replicas", "all")  # fmt: skip
        return self._starter.start("toolonce", *words, env={VARIABLE: str(self._ledger.path)})

    @contextmanager
    def _submitting(self) -> Iterator[None]:
        for harness in self._harnesses:
            harness.start()
        try:
            yield
        finally:
            self._ended.set()
            for harness in self._harnesses:
                harness.join()

    def _kill_until(self, end: float) -> None:
        while time.monotonic() < end:
            self._ended.wait(self._random.uniform(*PAUSES_S))
            self._kills += 1
            if self._random.random() < PAUSED_SHARE:
                with suppress(StoreError):
                    self._say(self._random.choice((pause, resume)), self._random.choice(PAUSABLE))
            if self._random.random() < SERVER_SHARE:
                self._disturb()
            else:
                place = self._random.randrange(WORKERS)
                self._workers[place].kill9()
                self._workers[place] = self._worker(place)

    def _say(self, change: Callable[..., Invocation[Any]], target: str) -> None:
        self._client.run(change(self._client.terms.space, target, Actor("chaos")))

    def _resume_all(self) -> bool:
        """True once all are resumed."""
        with suppress(StoreError):
            for target in PAUSABLE:
                self._say(resume, target)
            return True
        return False

    def _disturb(self) -> None:
        """Kill the server; or divide the network for a while, and wait until it is whole."""
        if self._server:
            self._server.restart()
        elif self._place:
            self._place.cut()
            self._ended.wait(self._random.uniform(*DIVIDED_S))
            self._place.heal()
            wait_until(self._place.whole, description="all servers follow one primary")

    def _stats(self) -> Stats:
        return self._client.run(queries.stats(self._client.terms.space))

    def _is_at_rest(self) -> bool:
        """Nothing moves; what can be reconciled has been."""
        counts = self._stats().counts
        moving = sum(counts.get(f"state:{state}", 0) for state in _TRANSIENT)
        return moving == 0 and counts.get("tool:unknown:reconcile", 0) == 0

    def _count(self) -> ChaosCounters:
        stats = self._stats()
        outcomes = [outcome for harness in self._harnesses for outcome in harness.outcomes()]
        asked = sum(len(harness.turns) for harness in self._harnesses) * len(KINDS)
        wrong = [outcome for outcome in outcomes if not self._is_true(outcome)]
        for outcome in wrong:
            print(f"wrong: {outcome.tool} {outcome.key} is {outcome.state}, but that is not so", file=sys.stderr)
        missing = (asked - len(outcomes)) + abs(stats.counts["admitted"] - asked) + (not stats.balanced)
        doubled = [found for found in self._ledger.doubled() if found.tool not in ("read", "idempotent")]
        for found in doubled:
            print(f"doubled: {found.tool} {found.call} happened {found.times} times", file=sys.stderr)
        return ChaosCounters(
            calls=asked,
            kills=self._kills,
            duplicates=len(doubled),
            lost=missing + len(wrong),
            unknown=stats.counts.get(f"state:{State.UNKNOWN}", 0),
        )

    def _is_true(self, outcome: Outcome) -> bool:
        """A success happened, a failure did not, and nothing is still waiting; of an unknown call both may be so."""
        happened = self._ledger.effects(outcome.key)
        match outcome.state:
            case State.SUCCEEDED:
                return happened > 0 and outcome.value == outcome.key
            case State.UNKNOWN:
                return outcome.tool not in ("read", "idempotent")
            case State.FAILED:
                return happened == 0
            case _:
                return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="of what is killed when")
    parser.add_argument("--partitions", action="store_true", help="divide the network of a primary and two replicas")
    args = parser.parse_args()
    print(f"seed {args.seed}, {WORKERS} workers of {SLOTS} slots, {HARNESSES} harnesses", flush=True)
    with tempfile.TemporaryDirectory(prefix="toolonce-chaos-") as name:
        folder = Path(name)
        with ProcessStarter(folder) as starter:
            chaos = Chaos(starter, folder, args.seed, partitions=args.partitions)
            try:
                counters = chaos.run(args.seconds)
            finally:
                chaos.close()
    print(counters, flush=True)
    return 0 if counters.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
