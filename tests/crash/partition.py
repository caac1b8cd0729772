"""Partitions: the primary is cut off together with a worker, and at will with one of two replicas, while a backlog of
mutating calls is worked off on both sides; then the handlers' entries are counted.

`python -m tests.crash.partition --seconds 12 --replicas all --through sentinel --runs 10`. The last line is ``runs N,
calls N, entered N, entered twice D, lost L, unrested R, unknown U, entered on after the promotion P``; the exit code is
1 unless D, L and R are 0. With ``--replicas 0`` it shows what happens to those who ask for none.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import astuple, dataclass
from pathlib import Path

import redis

from tests.support.crash.ledger import CrashLedger
from tests.support.crash.tools import VARIABLE, crowd
from tests.support.processes.processes import Child
from tests.support.servers.partition import Divided
from tests.support.wait import wait_until
from toolonce.store.connections.connection import Connection
from toolonce.store.model.states import State
from toolonce.store.operations import queries
from toolonce.store.operations.tools import publish
from toolonce.stream.harness.client import Client
from toolonce.stream.turns.turn import ToolCall

NAMESPACE = "partition"
SLOTS, LEASE_S, TAKES_MS = 2, 5, 300
CALLS_A_SECOND = 2 * SLOTS * 1000 // TAKES_MS
"""As many as both workers can take: those who need no replicas have work on both sides of the border."""
REST_S = 90
"""How long the calls may take to come to rest after the healing: the backlog, a lease and its grace."""


@dataclass(frozen=True, slots=True)
class PartitionOptions:
    """What a run is to be like.

    Attributes:
        replicas: what the workers are started with.
        near: replicas that are cut off together with the primary; far: on the other side.
        go_on: once a replica was promoted, a worker is started there that needs only one.
    """

    seconds: float
    replicas: str
    near: int
    far: int
    through: str
    go_on: bool = False


@dataclass(frozen=True, slots=True)
class PartitionCounters:
    """What came of it."""

    calls: int = 0
    entered: int = 0
    twice: int = 0
    lost: int = 0
    unrested: int = 0
    unknown: int = 0
    during: int = 0

    def __add__(self, other: PartitionCounters) -> PartitionCounters:
        return PartitionCounters(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))

    def __str__(self) -> str:
        return (
            f"calls {self.calls}, entered {self.entered}, entered twice {self.twice}, lost {self.lost}, "
            f"unrested {self.unrested}, unknown {self.unknown}, entered on after the promotion {self.during}"
        )

    @property
    def is_good(self) -> bool:
        return not (self.twice or self.lost or self.unrested)


class PartitionRun:
    """One partition, from whole to whole."""

    def __init__(self, options: PartitionOptions, folder: Path) -> None:
        self._options = options
        self._ledger = CrashLedger.create(folder / "ledger")
        self._stack = ExitStack()

    def __call__(self) -> PartitionCounters:
        options = self._options
        with self._stack:
            place = self._stack.enter_context(Divided(near=options.near, far=options.far, through=options.through))
            connection = Connection(place.url_cut_off, namespace=NAMESPACE)
            connection.run(publish(connection.space, crowd.specs()))
            workers = [self._worker(url, options.replicas) for url in (place.url_cut_off, place.url_majority)]
            keys = self._submit(place)
            wait_until(lambda: sum(map(self._ledger.entries, keys[:20])) > SLOTS, description="calls are worked off")
            place.cut()
            end = time.monotonic() + options.seconds
            wait_until(lambda: place.promoted() is not None, description="a replica is promoted")
            before = self._entries(keys)
            if options.go_on:
                workers[1].terminate()
                self._worker(place.url_majority, "1")
                wait_until(lambda: self._entries(keys) > before, description="calls are run again")
            wait_until(lambda: time.monotonic() > end, options.seconds + 5)
            during = self._entries(keys) - before
            place.heal()
            wait_until(place.whole, description="all servers follow one primary")
            connection.close()
            return self._count(place, keys, during)

    def _worker(self, url: str, replicas: str) -> Child:
        words = ("-m", "toolonce.ops", "work", "--tools", "tests.support.crash.tools:crowd", "--redis", url, "--grace",
                 "1s", "--namespace", NAMESPACE, "--lease", f"{LEASE_S}s", "--concurrency", str(SLOTS), "--replicas",
                 replicas)  # fmt: skip
        worker = self._stack.enter_context(Child.python(*words, env={VARIABLE: str(self._ledger.path)}))
        worker.wait_for_line("serves")
        return worker

    def _submit(self, place: Divided) -> list[str]:
        """A backlog that outlasts the partition; all replicas have it before the network is divided."""
        count = int(self._options.seconds * CALLS_A_SECOND) + 20
        how = {"takes_ms": TAKES_MS}
        asked = [ToolCall("mutating", {"lane": str(n), "how": how}, f"c{n}", "function", n) for n in range(count)]
        with Client(place.url_cut_off, scope="acme/1", namespace=NAMESPACE) as client:
            keys = [outcome.key for outcome in client.submit_calls(asked, turn_id="t1").outcomes]
        with place.primary.client() as caught_up:
            offset = caught_up.info("replication")["master_repl_offset"]
        wait_until(
            lambda: all(_offset(server.url) >= offset for server in place.replicas),
            description="the replicas have the calls",
        )
        return keys

    def _entries(self, keys: list[str]) -> int:
        return sum(map(self._ledger.entries, keys))

    def _count(self, place: Divided, keys: list[str], during: int) -> PartitionCounters:
        with Client(place.url_majority, scope="acme/1", namespace=NAMESPACE) as client:

            def states() -> list[object]:
                stored = client.run(queries.turn(client.terms.space, client.terms.turn("t1").key))
                return [outcome.state for outcome in stored]

            with suppress(AssertionError):  # what does not come to rest is counted
                wait_until(lambda: not _moving(states()), REST_S)
            found = states()
        entries = [self._ledger.entries(key) for key in keys]
        return PartitionCounters(
            calls=len(keys),
            entered=sum(map(bool, entries)),
            twice=sum(count > 1 for count in entries),
            lost=len(keys) - len(found) + found.count(None),
            unrested=_moving(found),
            unknown=found.count(State.UNKNOWN),
            during=during,
        )


def _moving(states: list[object]) -> int:
    return sum(state in (State.QUEUED, State.RUNNING, State.HELD) for state in states)


def _offset(url: str) -> int:
    """How far a replica is; -1 where a Sentinel has just cut its connections."""
    with suppress(redis.RedisError), redis.Redis.from_url(url, decode_responses=True) as client:
        info = client.info("replication")
        return int(info.get("slave_repl_offset", info["master_repl_offset"]))
    return -1


def run_once(options: PartitionOptions) -> PartitionCounters:
    """One partition, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="toolonce-partition-") as folder:
        return PartitionRun(options, Path(folder))()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=12, help="how long each partition lasts (12)")
    parser.add_argument("--replicas", default="all", help="what the workers are started with (all)")
    parser.add_argument("--two", action="store_true", help="two replicas, one of them cut off with the primary")
    parser.add_argument(
        "--through", choices=("direct", "sentinel"), default="direct", help="how the cut-off worker looks"
    )
    parser.add_argument(
        "--go-on", action="store_true", help="two far replicas; after promotion a worker that needs one"
    )
    parser.add_argument("--runs", type=int, default=1)
    args = parser.parse_args()
    near, far = int(args.two), 2 if args.go_on else 1
    options = PartitionOptions(args.seconds, args.replicas, near, far, args.through, args.go_on)
    total = PartitionCounters()
    for number in range(1, args.runs + 1):
        counters = run_once(options)
        print(f"run {number}: {counters}", flush=True)
        total += counters
    print(f"runs {args.runs}, {total}", flush=True)
    return 0 if total.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
