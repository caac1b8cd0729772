"""What one call costs: from submit to the handler's first line, a replay, bytes of memory.

Run: .venv/bin/python benchmarks/latency.py

Each is compared with a plain command that redis-py sends to the same server, over TCP too and in the same rhythm: a
lone submit with lone durable SETs, all after a pause in which every process fell asleep; replays in a row with GETs in
a row. What the same commands take without a pause, and over our own connection, which is quicker than redis-py, is
shown beside.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import marks
import redis
from grounds import PATIENCE_S, ground, workers
from rivals import fill_ours, our_worker

from tests.support.wait import wait_until
from toolonce.store.connections.connection import Connection
from toolonce.store.model.keys import Namespace
from toolonce.stream.harness.batch import Batch
from toolonce.stream.harness.client import Client
from toolonce.stream.turns.turn import ToolCall

PAUSE_S = 0.005
WAITS = 300
ROW = 4000


def main() -> int:
    with ground() as (_, url, path), workers(our_worker(), 1), Client(url, scope="bench") as client:
        plain = redis.Redis.from_url(url)
        wait_until(lambda: plain.scard(Namespace().rq_workers), PATIENCE_S, "the worker is there")
        starts(client, plain, path)
        replays(client, plain, url)
    memory()
    return 0


@dataclass(frozen=True)
class Starts:
    """Medians, seconds: submit to the handler's first line, and one durable SET in the same rhythm and in a row."""

    wait: float
    paced_set: float
    set_in_a_row: float


def starts(client: Client, plain: redis.Redis, path: Path) -> None:
    """From submit to the handler's first line on an idle worker, against one durable SET."""
    found = measured_starts(client, plain, path, WAITS)
    print(
        f"submit to handler start, p50: {ms(found.wait)} = {found.wait / found.paced_set:.1f} durable SETs of "
        f"{ms(found.paced_set)} in the same rhythm"
    )
    ratio = found.wait / found.set_in_a_row
    print(f"    ({ratio:.1f} of those sent in a row without a pause, {ms(found.set_in_a_row)} each)")


def measured_starts(client: Client, plain: redis.Redis, path: Path, waits: int) -> Starts:
    sets, times = list[float](), list[float]()
    for n in range(waits):
        sets += (paced_set(plain, n), paced_set(plain, n))  # one after a call, one after a SET
        time.sleep(PAUSE_S)
        times.append(one_wait(client, path, n))
    in_a_row = [timed(lambda: plain.set("bench:0", "x" * 100)) for _ in range(WAITS)]
    return Starts(statistics.median(times), statistics.median(sets), statistics.median(in_a_row))


def paced_set(plain: redis.Redis, n: int) -> float:
    """Seconds for one durable SET after a pause."""
    time.sleep(PAUSE_S)
    return timed(partial(plain.set, f"bench:{n}", "x" * 100))


def one_wait(client: Client, path: Path, n: int) -> float:
    """Submit one call to an idle worker; seconds until its handler ran."""
    seen = marks.count(path)
    started = time.time()
    client.submit_calls([ToolCall("noop", {"n": n}, "c", "function", 0)], turn_id=f"wait-{n}")
    wait_until(lambda: marks.count(path) > seen, PATIENCE_S, "the handler ran")
    return marks.read(path)[-1][1] - started


def replays(client: Client, plain: redis.Redis, url: str) -> None:
    """Calls a second that are answered from the store when a turn is submitted again, against GETs. In turns, since a
    machine's speed changes; the median counts."""
    with closing(Connection(url)) as own:
        again = {size: replay(client, size) for size in (1, 10)}
        rounds = [
            (
                rate(lambda: plain.get("bench:1"), ROW),
                rate(lambda: own.command("GET", "bench:1"), ROW),
                *(size * rate(go, ROW // size) for size, go in again.items()),
            )
            for _ in range(5)
        ]
    gets, own_gets, *found = (statistics.median(column) for column in zip(*rounds, strict=True))
    print(f"GETs/s: {gets:.0f} by redis-py, {own_gets:.0f} over our own connection")
    for size, replayed in zip(again, found, strict=True):
        ratios = f"{replayed / gets:.2f} of redis-py's GETs, {replayed / own_gets:.2f} of our own"
        print(f"calls replayed/s, {size} in a round trip: {replayed:.0f} = {ratios}")


def replay(client: Client, size: int) -> Callable[[], Batch]:
    turn = [ToolCall("noop", {"n": n}, f"again-{n}", "function", n) for n in range(size)]

    def again() -> Batch:
        return client.submit_calls(turn, turn_id=f"again-{size}")

    again().wait(timeout=10)
    return again


def memory() -> None:
    """Bytes of the server's memory per queued call, and per settled one."""
    with ground() as (server, url, path), server.client() as plain:
        fill_ours(url, 50)
        before = plain.info("memory")["used_memory_dataset"]
        fill_ours(url, 2050)
        queued = (plain.info("memory")["used_memory_dataset"] - before) / 2000
        with workers(our_worker(), 1):
            wait_until(lambda: marks.count(path) >= 2050, PATIENCE_S, "all have run")
        settled = (plain.info("memory")["used_memory_dataset"] - before) / 2000
    print(f"memory: {queued:.0f} bytes per queued call, {settled:.0f} per settled one (history and events included)")


def timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def rate(action: Callable[[], object], times: int) -> float:
    return times / timed(lambda: [action() for _ in range(times)])


def ms(seconds: float) -> str:
    return f"{1000 * seconds:.2f} ms"


if __name__ == "__main__":
    sys.exit(main())
