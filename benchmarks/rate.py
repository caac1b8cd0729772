"""How exactly a rate is kept: starts in a minute by several workers, the most in any window, and claims for each start.

Run: .venv/bin/python benchmarks/rate.py [RATE ...]     a minute and some seconds each; by default 100/min and 20/s

Three worker processes of four slots; twice as many calls as the rate lets start are there from the beginning. Starts
are the moments of the claims by the server's clock, as the events tell them; claims are counted by the server.
"""

from __future__ import annotations

import json
import sys
import time
from bisect import bisect_left
from contextlib import closing
from dataclasses import dataclass

from grounds import ground, workers
from rivals import our_worker

from toolonce.store.connections.connection import Connection
from toolonce.store.model.rates import Rate
from toolonce.store.operations.controls import rate
from toolonce.store.operations.operators import Actor
from toolonce.stream.harness.client import Client
from toolonce.stream.turns.turn import ToolCall

WORKERS, SLOTS = 3, 4
MINUTE_MS = 60_000


@dataclass(frozen=True)
class Kept:
    """What a run shows; `scripts`: how many the server ran in a second."""

    in_the_minute: int
    most_in_a_minute: int
    most_in_its_time: int
    claims_a_start: float
    scripts: float


def main(rates: list[str]) -> int:
    for written in rates or ["100/min", "20/s"]:
        most, kept = Rate.parse(written), measured(Rate.parse(written))
        allowed = most.per_second * MINUTE_MS / 1000
        share = kept.in_the_minute / allowed
        print(f"{written}: {kept.in_the_minute} starts in the first minute of {allowed:g}, {share:.1%}")
        print(f"    at most {kept.most_in_a_minute} in any minute, {kept.most_in_its_time} of {most.calls} in its time")
        print(f"    {kept.claims_a_start:.3f} claims a start, {kept.scripts:.0f} scripts/s")
    return 0


def measured(most: Rate) -> Kept:
    """One run of a minute and some seconds."""
    with ground() as (_, url, _path), closing(Connection(url)) as connection, Client(url, scope="bench") as client:
        connection.run(rate(connection.space, "tool:noop", most, Actor("benchmark")))
        with workers(our_worker(SLOTS), 1):
            wait_for_tools(client)
        submit(client, round(2 * most.per_second * MINUTE_MS / 1000) + 10)
        claims, scripts = told(connection)
        with workers(our_worker(SLOTS), WORKERS):
            began = time.monotonic()
            time.sleep(MINUTE_MS / 1000 + 8)
            claims_after, scripts_after = told(connection)
            took = time.monotonic() - began
        starts = started_at(connection)
    first = starts[0]
    return Kept(
        bisect_left(starts, first + MINUTE_MS),
        most_in(starts, MINUTE_MS),
        most_in(starts, most.period_ms),
        (claims_after - claims) / len(starts),
        (scripts_after - scripts) / took,
    )


def wait_for_tools(client: Client) -> None:
    """Until a worker has published the tools."""
    while True:
        try:
            submit(client, 1, turn="first")
            return
        except Exception:
            time.sleep(0.1)


def submit(client: Client, count: int, turn: str = "") -> None:
    for at in range(0, count, 100):
        calls = [ToolCall("noop", {"n": n}, f"c{n}", "function", n - at) for n in range(at, min(count, at + 100))]
        client.submit_calls(calls, turn_id=turn or f"turn-{at}")


def told(connection: Connection) -> tuple[int, int]:
    """Claims, each of which takes its pointer out of a list as hardly anything else does; and all scripts."""
    info = connection.command("INFO", "everything").decode().splitlines()
    fields = dict(line.split(":", 1) for line in info if ":" in line)

    def calls(command: str) -> int:
        return int(fields.get(f"cmdstat_{command}", "calls=0,").partition("calls=")[2].partition(",")[0])

    return calls("lrem"), calls("evalsha")


def started_at(connection: Connection) -> list[int]:
    """Moments of the claims, ms of the server's clock."""
    stored = connection.command("XRANGE", connection.space.events, "-", "+")
    told_ = [json.loads(dict(zip(fields[::2], fields[1::2], strict=True))[b"event"]) for _, fields in stored]
    return sorted(event["at"] for event in told_ if event["op"] == "claim" and event.get("to") == "running")


def most_in(starts: list[int], window_ms: int) -> int:
    """The most starts in any window of this length."""
    return max(bisect_left(starts, first + window_ms) - place for place, first in enumerate(starts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
