"""Calls per second against other queues, on one fsyncing server after the other, in one run.

Run: .venv/bin/python benchmarks/worker.py [--calls 6000] [--rounds 2]      the others: dependency group ``bench``

Each system gets a fresh server (``appendfsync always``), its queue filled before its worker starts, and one worker
process. Rates come from the handlers' own marks. Compare the rows of one run only; the ratios are what counts, and
the median of the rounds, taken in turn, is what is shown. Then what one call costs: see `latency`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import latency
import marks
from grounds import PATIENCE_S, ground, workers
from rivals import OTHERS, OURS, RQ, TWO_OF_OURS, Rival, fill_ours, our_worker

from tests.support.wait import wait_until

NAPS = 200
CRUNCHES = 1500


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
    crunching(args.rounds)
    latency.main()
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
    with ground() as (_, url, path):
        rival.fill(url, count)
        with workers(rival.worker, rival.processes):
            wait_until(lambda: marks.count(path) >= count, PATIENCE_S, f"{rival.name} runs {count} jobs")
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


def crunching(rounds: int) -> None:
    """Two processes against one where handlers compute: 1 ms of the interpreter each."""
    one, two = (replace(rival, fill=partial(fill_ours, tool="crunch")) for rival in (OURS, TWO_OF_OURS))
    rates = compare([one, two], CRUNCHES, rounds)
    print(f"two processes over one, handlers that compute for 1 ms: {rates[two.name] / rates[one.name]:.2f}")


def _have_slept(path: Path) -> bool:
    return marks.count(path) >= NAPS + 50


def naps() -> None:
    """200 calls that sleep 50 ms, 50 at once: 200 ms is what it takes at best."""
    for tool in ("nap", "nap_async"):
        with ground() as (_, url, path):
            fill_ours(url, NAPS + 50, tool)
            with workers(our_worker(50), 1):
                wait_until(partial(_have_slept, path), PATIENCE_S, "all have slept")
            ended = sorted(moment for _, moment in marks.read(path))[50:]
        took = ended[-1] - ended[0]
        print(
            f"{NAPS} calls of {tool}, 50 ms, in 50 slots: {1000 * took:.0f} ms = {took / 0.2:.2f} of the ideal 200 ms"
        )


if __name__ == "__main__":
    sys.exit(main())
