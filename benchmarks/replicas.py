"""What a mutating call costs with replicas that must have its claim and outcome, against a store without any.

Run: .venv/bin/python benchmarks/replicas.py [--calls 3000] [--rounds 3] [--slots 32]

All servers run on this machine and fsync: the rows compare ways of working, not networks. Each row gets fresh servers.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from contextlib import ExitStack
from dataclasses import dataclass

import marks
from grounds import PATIENCE_S, ground, workers
from rivals import fill_ours, our_worker

from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until


@dataclass(frozen=True)
class ReplicasRow:
    """Replicas that are there, and replicas that the worker needs."""

    attached: int
    needed: int


ROWS = (ReplicasRow(0, 0), ReplicasRow(1, 0), ReplicasRow(1, 1), ReplicasRow(2, 0), ReplicasRow(2, 2))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slots", type=int, default=32)
    args = parser.parse_args()
    found: dict[ReplicasRow, list[float]] = {row: [] for row in ROWS}
    for _ in range(args.rounds):
        for row in ROWS:
            found[row].append(drain(row, args.calls, args.slots))
    base = statistics.median(found[ROWS[0]])
    print(f"{'replicas':>8} {'--replicas':>11} {'calls/s':>9} {'of none':>8}")
    for row, rates in found.items():
        rate = statistics.median(rates)
        print(f"{row.attached:8} {row.needed:11} {rate:9.0f} {rate / base:8.2f}")
    return 0


def drain(row: ReplicasRow, count: int, slots: int) -> float:
    """Fill the queue, start the worker, and measure until the last handler has run."""
    with ground() as (primary, url, path), ExitStack() as stack:
        replicas = [stack.enter_context(RealServer(repl_diskless_sync_delay="0")) for _ in range(row.attached)]
        with primary.client() as client:
            port = client.config_get("port")["port"]
        for replica in replicas:
            _follow(replica, port)
        fill_ours(url, count)
        with workers((*our_worker(slots), "--replicas", str(row.needed)), 1):
            wait_until(lambda: marks.count(path) >= count, PATIENCE_S, f"{count} calls run")
        return marks.rate([moment for _, moment in marks.read(path)])


def _follow(replica: RealServer, port: str) -> None:
    with replica.client() as client:
        client.execute_command("REPLICAOF", "127.0.0.1", port)
        wait_until(lambda: client.info("replication")["master_link_status"] == "up")


if __name__ == "__main__":
    sys.exit(main())
