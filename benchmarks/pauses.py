"""What a pause costs with many calls behind it: pausing, resuming, and all of them running afterwards.

Run: .venv/bin/python benchmarks/pauses.py [--calls 200000]       needs about 5 KB of memory and disk per call

The tool is paused, the calls are admitted, and one worker parks them; the pause lasts longer than their queue deadline.
Then the server's own time is taken for a pause of what is paused, a resume, and a pause with a resume behind it, and
the worker runs all calls. Shown is how many ran once, and how many expired.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import marks
from grounds import ground, workers
from our_tools import tools
from rivals import new_call, our_worker

from tests.support.wait import wait_until
from toolonce.store.connections.connection import Connection
from toolonce.store.model import identity
from toolonce.store.operations import admission
from toolonce.store.operations.controls import pause, paused_calls, resume
from toolonce.store.operations.operation import Invocation
from toolonce.store.operations.operators import Actor
from toolonce.store.operations.queries import stats
from toolonce.store.operations.tools import publish

TARGET = "tool:noop"
A_TURN = 200
PATIENCE_S = 3_600
ANN = Actor("ann", "benchmark")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--deadline", type=int, default=180, help="queue deadline of the calls, seconds")
    args = parser.parse_args()
    with ground() as (server, url, path), server.client() as redis:
        connection = Connection(url)
        space = connection.space
        show(redis, connection, "pause, nothing parked", pause(space, TARGET, ANN))
        began = time.monotonic()
        fill(connection, args.calls, args.deadline)
        print(f"admitted {args.calls} calls in {time.monotonic() - began:.0f} s")
        with workers(our_worker(), 1):
            began = time.monotonic()
            wait_until(lambda: parked(connection) == args.calls, PATIENCE_S, "all are parked")
            print(f"parked all in {time.monotonic() - began:.0f} s")
            show(redis, connection, "pause again, all parked", pause(space, TARGET, ANN))
            time.sleep(args.deadline)  # longer than any of them may wait
            show(redis, connection, "resume, all parked", resume(space, TARGET, ANN))
            show(redis, connection, "pause, all parked", pause(space, TARGET, Actor("bob")))
            began = time.monotonic()
            show(redis, connection, "resume, all parked", resume(space, TARGET, ANN))
            wait_until(lambda: not open_calls(connection), PATIENCE_S, "all have run")
            print(f"ran all in {time.monotonic() - began:.0f} s")
        counts = connection.run(stats(space)).counts
        ran = Counter(number for number, _ in marks.read(path))
        print(f"ran: {len(ran)} calls, each at most {max(ran.values())} times; expired: {counts['state:expired']}")
        connection.close()
    return 0 if len(ran) == args.calls == sum(ran.values()) else 1


def fill(connection: Connection, count: int, deadline_s: int) -> None:
    """Admit the calls, in turns."""
    space, noop = connection.space, tools.find("noop")
    assert noop
    connection.run(publish(space, tools.specs()))
    spec = replace(noop.spec, deadline_ms=deadline_s * 1000)
    for first in range(0, count, A_TURN):
        turn_id = f"turn-{first}"
        turn = admission.Turn("bench", turn_id, identity.turn_key(space.name, "bench", turn_id))
        calls = [new_call(space.name, turn_id, spec, n) for n in range(first, min(count, first + A_TURN))]
        connection.run(admission.admit(space, turn, calls, request=admission.Request(turn_id)))


def parked(connection: Connection) -> int:
    return connection.run(paused_calls(connection.space, [TARGET]))[TARGET].parked


def open_calls(connection: Connection) -> int:
    return connection.run(stats(connection.space)).open


def show(redis: Any, connection: Connection, what: str, invocation: Invocation[Any]) -> None:
    """Run it, and print the time that the server has spent in its script, and what the caller waited."""
    redis.script_load(invocation.script.text)
    before, began = spent(redis, invocation), time.perf_counter()
    connection.run(invocation)
    waited = time.perf_counter() - began
    print(f"{what:26} {spent(redis, invocation) - before:6.3f} ms of the server, {waited * 1000:6.2f} ms to wait")


def spent(redis: Any, invocation: Invocation[Any]) -> float:
    """Milliseconds that the server has spent in scripts; other scripts run at the same time only while calls run."""
    return float(redis.info("commandstats").get("cmdstat_evalsha", {}).get("usec", 0)) / 1000


if __name__ == "__main__":
    sys.exit(main())
