"""Calls per second against other queues, on one fsyncing server after the other, in one run.

Run: .venv/bin/python benchmarks/worker.py [--calls 6000] [--rounds 2]      the others: dependency group ``bench``

Each system gets a fresh server (``appendfsync always``), its queue filled before its worker starts, and one worker
process. Rates come from the handlers' own marks. Compare the rows of one run only; the ratios are what counts, and
the median of the rounds, taken in turn, is what is shown.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import marks  # noqa: E402  they need the path above
from rivals import OTHERS, OURS, RQ, TWO_OF_OURS, Rival, fill_ours, our_worker  # noqa: E402

from tests.support.redis_server import RealServer  # noqa: E402
from tests.support.wait import wait_until  # noqa: E402
from toolonce.stream.batch import Batch  # noqa: E402
from toolonce.stream.client import Client  # noqa: E402
from toolonce.stream.turn import ToolCall  # noqa: E402

NAPS = 200
PATIENCE_S = 240
_SILENT: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=6000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only-ours", action="store_true", help="without the other queues but RQ")
    args = parser.parse_args()
    rivals = [RQ, OURS, TWO_OF_OURS, *(() if args.only_ours else OTHERS)]
    for missing in (rival for rival in rivals if not rival.is_installed):
        print(f"not installed, left out: {missing.name}")
    rates = compare([rival for rival in rivals if rival.is_installed], args.calls, args.rounds)
    show(rates)
    latency()
    naps()
    return 0


def compare(rivals: list[Rival], calls: int, rounds: int) -> dict[str, float]:
    """The median rate of each, the rounds taken in turn so that a slow minute of the machine meets all."""
    found: dict[str, list[float]] = {rival.name: [] for rival in rivals}
    for _ in range(rounds):
        for rival in rivals:
            found[rival.name].append(drain(rival, int(calls * rival.share)))
    return {name: statistics.median(rates) for name, rates in found.items()}


def drain(rival: Rival, count: int) -> float:
    """Fill the queue, start the worker, and measure until the last handler has run."""
    with site() as (_, url, path):
        rival.fill(url, count)
        with workers(rival.worker, rival.processes):
            wait_until(lambda: len(marks.read(path)) >= count, PATIENCE_S, f"{rival.name} runs {count} jobs")
        return marks.rate([moment for _, moment in marks.read(path)])


def show(rates: dict[str, float]) -> None:
    ours, base = rates[OURS.name], rates[RQ.name]
    print(f"\n{'no-op, outcome stored':28} {'calls/s':>9} {'x RQ':>7}")
    for name, rate in rates.items():
        print(f"{name:28} {rate:9.0f} {rate / base:7.1f}")
    others = {name: rate for name, rate in rates.items() if not name.startswith("toolonce") and name != RQ.name}
    print(f"ours over RQ SimpleWorker: {ours / base:.1f}")
    if others:
        best = max(others, key=lambda name: others[name])
        print(f"ours over the best of the others ({best}): {ours / others[best]:.2f}")
    print(f"two processes over one: {rates[TWO_OF_OURS.name] / ours:.2f}")


def latency() -> None:
    """From submit to the handler's first line, against durable SETs; replays against GETs; memory per call."""
    with site() as (server, url, path), workers(our_worker(), 1), Client(url, scope="bench") as client:
        client_ready(server)
        waits = [one_wait(client, path, n) for n in range(150)]
        with server.client() as redis:
            sets = [timed(lambda n=n: redis.set(f"bench:{n}", "x" * 100)) for n in range(300)]
            gets = per_second(lambda: redis.get("bench:1"), 2000)
        replays = {size: replay_rate(client, size) for size in (1, 10)}
    p50, durable = statistics.median(waits), statistics.median(sets)
    print(f"\nsubmit to handler start, p50: {1000 * p50:.2f} ms = {p50 / durable:.1f} SETs of {1000 * durable:.2f} ms")
    for size, rate in replays.items():
        print(f"calls replayed/s, {size} in a round trip: {rate:.0f} = {rate / gets:.2f} of GETs/s ({gets:.0f})")
    memory()


def replay_rate(client: Client, size: int) -> float:
    """Calls a second that are answered from the store when a turn of this size is submitted again."""
    turn = [ToolCall("noop", {"n": n}, f"again-{n}", "function", n) for n in range(size)]

    def again() -> Batch:
        return client.submit_calls(turn, turn_id=f"again-{size}")

    again().wait(timeout=10)
    return size * per_second(again, 2000 // size)


def memory() -> None:
    """Bytes of the server's memory per queued call, and per settled one."""
    with site() as (server, url, path), server.client() as redis:
        fill_ours(url, 50)
        before = redis.info("memory")["used_memory_dataset"]
        fill_ours(url, 2050)
        queued = (redis.info("memory")["used_memory_dataset"] - before) / 2000
        with workers(our_worker(), 1):
            wait_until(lambda: len(marks.read(path)) >= 2050, PATIENCE_S, "all have run")
        settled = (redis.info("memory")["used_memory_dataset"] - before) / 2000
    print(f"memory: {queued:.0f} bytes per queued call, {settled:.0f} per settled one (history and events included)")


def naps() -> None:
    """200 calls that sleep 50 ms, 50 at once: 200 ms is what it takes at best."""
    for tool in ("nap", "nap_async"):
        with site() as (_, url, path):
            fill_ours(url, NAPS + 50, tool)
            with workers(our_worker(50), 1):
                wait_until(lambda path=path: len(marks.read(path)) >= NAPS + 50, PATIENCE_S, "all have slept")
            ended = sorted(moment for _, moment in marks.read(path))[50:]
        took = ended[-1] - ended[0]
        print(
            f"{NAPS} calls of {tool}, 50 ms, in 50 slots: {1000 * took:.0f} ms = {took / 0.2:.2f} of the ideal 200 ms"
        )


def one_wait(client: Client, path: Path, n: int) -> float:
    """Submit one call to an idle worker; seconds until its handler ran."""
    seen = len(marks.read(path))
    started = time.time()
    client.submit_calls([ToolCall("noop", {"n": n}, "c", "function", 0)], turn_id=f"wait-{n}")
    wait_until(lambda: len(marks.read(path)) > seen, 10, "the handler ran")
    return marks.read(path)[-1][1] - started


def client_ready(server: RealServer) -> None:
    with server.client() as redis:
        wait_until(lambda: redis.scard("rq:workers"), 30, "the worker is there")


def timed(action: object) -> float:
    started = time.perf_counter()
    action()  # type: ignore[operator]
    return time.perf_counter() - started


def per_second(action: object, times: int) -> float:
    return times / timed(lambda: [action() for _ in range(times)])  # type: ignore[operator]


@contextmanager
def site() -> Iterator[tuple[RealServer, str, Path]]:
    """A fresh durable server and a fresh file of marks, named to all that is started inside."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    url = f"redis://127.0.0.1:{port}/0"  # not all of them know unix sockets
    with RealServer(port=port, bind="127.0.0.1") as server, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "marks"
        os.environ |= {"BENCH_REDIS": url, "TOOLONCE_REDIS_URL": url, marks.FILE: str(path)}
        yield server, url, path


@contextmanager
def workers(command: tuple[str, ...], count: int) -> Iterator[None]:
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    started = [subprocess.Popen(command, cwd=HERE, env=environment, **_SILENT) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)  # some have started others
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
