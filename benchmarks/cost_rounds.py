"""One round of what calls cost: each measurement on a fresh server that fsyncs each write."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import latency
import marks
import redis
from checkouts import Checkout
from grounds import PATIENCE_S, ground, workers
from rivals import Rival, our_worker
from usage import ServerUsage, session_cpu_us

from tests.support.wait import wait_until
from toolonce.store.model.keys import Namespace
from toolonce.stream import Client

WARM = 50
LIGHT_CLIENTS = 2
CONTROLS = 100
_LAST_OUTCOMES_S = 0.5


@dataclass(frozen=True)
class Cost:
    """What one call of one system costs, from its submission to its stored outcome.

    Attributes:
        submit_us, run_us: time of the server's main thread; `server_us` is both.
        worker_us: time of all threads of the worker.
        aof_bytes: added to the server's append-only file.
        queued_bytes, settled_bytes: added to the server's data.
    """

    submit_us: float
    run_us: float
    worker_us: float
    calls_per_s: float
    aof_bytes: float
    queued_bytes: float
    settled_bytes: float

    @property
    def server_us(self) -> float:
        return self.submit_us + self.run_us


@dataclass(frozen=True)
class Drained:
    """What a server does at most: clients that run nothing take, claim and settle what is queued."""

    calls_per_s: float
    server_us: float
    client_us: float


def cost(rival: Rival, count: int) -> Cost:
    """Fill the queue, then let one worker process empty it. Its own time and its rate are taken without the first and
    the last calls; the server's time is all that it spends, since some systems fetch early and store late."""
    with ground(**rival.server) as (server, url, path), server.client() as plain:
        total = count + WARM

        def ran(least: int) -> None:
            wait_until(lambda: marks.count(path) >= least, PATIENCE_S, f"{rival.name} runs {least} calls")

        rival.fill(url, WARM)
        empty = ServerUsage.of(plain)
        rival.fill(url, count)
        filled = ServerUsage.of(plain)
        with workers(rival.worker, rival.processes, rival.environment) as processes:
            leaders = [process.pid for process in processes]
            ran(total // 8)
            at, first, worker_us = time.perf_counter(), marks.count(path), session_cpu_us(leaders)
            ran(total - total // 50)
            ran_calls, took = marks.count(path) - first, time.perf_counter() - at
            worker_us = session_cpu_us(leaders) - worker_us
            ran(total)
            time.sleep(_LAST_OUTCOMES_S)  # not all systems can be asked whether the last ones are stored
            settled = ServerUsage.of(plain)
    queued = (filled.data_bytes - empty.data_bytes) / count
    return Cost(
        submit_us=(filled.cpu_us - empty.cpu_us) / count,
        run_us=(settled.cpu_us - filled.cpu_us) / total,
        worker_us=worker_us / ran_calls,
        calls_per_s=ran_calls / took,
        aof_bytes=(filled.aof_bytes - empty.aof_bytes) / count + (settled.aof_bytes - filled.aof_bytes) / total,
        queued_bytes=queued,
        settled_bytes=(settled.data_bytes - empty.data_bytes + queued * WARM) / total,
    )


def drained(checkout: Checkout, count: int) -> Drained:
    """Two light clients empty the queue, as quickly as the server can."""
    with ground(**checkout.server) as (server, url, _), server.client() as plain:
        checkout.admit(url, count)
        clients = [checkout.phases("drain", url) for _ in range(LIGHT_CLIENTS)]
        for client in clients:
            client.ready()
        before = ServerUsage.of(plain)
        for client in clients:
            client.start()
        done = [client.finish() for client in clients]
        spent = ServerUsage.of(plain).cpu_us - before.cpu_us
    calls = sum(client["calls"] for client in done)
    seconds = max(client["seconds"] for client in done)
    return Drained(calls / seconds, spent / calls, 1e6 * sum(client["cpu_seconds"] for client in done) / calls)


def waits(count: int) -> tuple[float, float]:
    """Two ratios: a lone call from its submission to its handler's first line, in durable SETs sent in a row; and calls
    a second that are answered from the store, one in a round trip, over redis-py's GETs."""
    with ground() as (_, url, path), workers(our_worker(), 1), Client(url, scope="bench") as client:
        plain = redis.Redis.from_url(url)
        wait_until(lambda: plain.scard(Namespace().rq_workers), PATIENCE_S, "the worker is there")
        found = latency.measured_starts(client, plain, path, count)
        again = latency.replay(client, 1)
        row = 10 * count
        pairs = [(latency.rate(again, row), latency.rate(lambda: plain.get("bench:0"), row)) for _ in range(5)]
        plain.close()
    return found.wait / found.set_in_a_row, statistics.median(replays / gets for replays, gets in pairs)


def control() -> float:
    """Median milliseconds of durable SETs, each after a pause: how quick the machine is now."""
    with ground() as (_, url, _), redis.Redis.from_url(url) as plain:
        return 1000 * statistics.median(latency.paced_set(plain, n) for n in range(CONTROLS))
