"""What one call costs the server, the worker, the disk and the memory; beside other queues, in one run.

Run: .venv/bin/python benchmarks/cost.py [--before CHECKOUT] [--json]     the other queues: dependency group ``bench``
     .venv/bin/python benchmarks/cost.py --only-instructions              seconds; any machine, however busy

Whole path: calls are submitted in turns of 10 (other queues: one by one, their only way), then one worker process runs
no-ops and stores their outcomes. Each system gets a fresh server with ``appendfsync always``. Time is the server's main
thread's, and that of all threads of the worker. Rounds alternate; shown are the median and, in brackets, the least and
the most; ratios are made round by round. Instructions are the server's own, counted by callgrind: they decide where
rounds disagree.

The control is a durable SET after a pause. A run does not count where it varies by more than 20 %, where there are
fewer than five rounds, or where the server is not the pinned one. Ends with 1 where a call takes more instructions
than --max-instructions, else with 3 where the run does not count.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import callgrind
import cost_rounds
from callgrind import Instructions
from checkouts import Checkout
from cost_rounds import Cost, Drained
from rivals import OTHERS, RQ, Rival

MAX_INSTRUCTIONS = 1_000_000
MOST_SPREAD = 0.2
LEAST_ROUNDS = 5
PINNED = "valkey 9.1.2"
COUNTED_CALLS = 300
ROOT = Path(__file__).resolve().parent.parent
OURS, BEFORE = "toolonce", "before"
COLUMNS = ("submit_us", "run_us", "server_us", "worker_us", "calls_per_s", "aof_bytes", "queued_bytes", "settled_bytes")


@dataclass
class Rounds:
    """All that was measured, a list of rounds each."""

    costs: dict[str, list[Cost]] = field(default_factory=dict)
    drained: dict[str, list[Drained]] = field(default_factory=dict)
    starts: list[float] = field(default_factory=list)
    replays: list[float] = field(default_factory=list)
    controls: list[float] = field(default_factory=list)
    instructions: dict[str, Instructions] = field(default_factory=dict)

    def median(self, name: str, column: str) -> float:
        return statistics.median(self.column(name, column))

    def column(self, name: str, column: str) -> list[float]:
        return [getattr(cost, column) for cost in self.costs[name]]

    def ratio(self, name: str, other: str, column: str = "server_us") -> list[float]:
        """Round by round."""
        pairs = zip(self.column(name, column), self.column(other, column), strict=True)
        return [mine / theirs for mine, theirs in pairs]

    @property
    def peers(self) -> list[str]:
        return [name for name in self.costs if name not in (OURS, BEFORE)]

    def best_peer(self, column: str, of: Callable[..., str] = min) -> str | None:
        """The other queue with the least, or the most."""
        return of(self.peers, key=lambda name: self.median(name, column)) if self.peers else None

    @property
    def spread(self) -> float:
        """How far the slowest control is from the quickest, in parts of it."""
        return max(self.controls) / min(self.controls) - 1

    def objections(self) -> list[str]:
        """Why this run does not count."""
        found = []
        if len(self.controls) < LEAST_ROUNDS:
            found.append(f"{len(self.controls)} rounds, and {LEAST_ROUNDS} are the least")
        if self.spread > MOST_SPREAD:
            found.append(f"the control varied by {self.spread:.0%}, and {MOST_SPREAD:.0%} is the most")
        return found + other_server(self.instructions)


def main() -> int:
    args = arguments()
    trees = [Checkout.at(OURS, ROOT), *([Checkout.at(BEFORE, args.before)] if args.before else [])]
    if not callgrind.is_installed():
        if args.instructions or args.only_instructions:
            raise SystemExit(callgrind.MISSING)
        print(callgrind.WITHOUT)
    found = {tree.name: callgrind.instructions(tree, COUNTED_CALLS) for tree in trees if callgrind.is_installed()}
    show_instructions(found, args.max_instructions)
    if args.only_instructions:
        answer, why_not = of_instructions(found), other_server(found)
    else:
        rounds = measure(trees, args)
        rounds.instructions = found
        show(rounds)
        answer, why_not = summary(rounds), rounds.objections()
    for reason in why_not:
        print(f"this run does not count: {reason}")
    answer["counts"] = not why_not
    if args.json:
        print(json.dumps(answer))
    over = found and found[OURS].total > args.max_instructions
    return 1 if over else 3 if why_not else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=4000, help="of each system in each round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=LEAST_ROUNDS, help="(%(default)s)")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="folder of an earlier commit, measured too")
    parser.add_argument("--no-peers", action="store_true", help="without the other queues")
    parser.add_argument("--instructions", action="store_true", help="end where instructions cannot be counted")
    parser.add_argument("--only-instructions", action="store_true", help="count instructions, and measure no time")
    parser.add_argument(
        "--max-instructions", type=int, default=MAX_INSTRUCTIONS, metavar="N", help="most for a call (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one last line of JSON")
    return parser.parse_args()


def measure(trees: Sequence[Checkout], args: argparse.Namespace) -> Rounds:
    """Each round measures all, one after the other, so that a slow minute of the machine meets all."""
    systems = [tree.rival() for tree in trees] + ([] if args.no_peers else installed([RQ, *OTHERS]))
    rounds = Rounds()
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr, flush=True)
        rounds.controls.append(cost_rounds.control())
        for rival in systems:
            found = cost_rounds.cost(rival, int(args.calls * rival.share))
            rounds.costs.setdefault(label(rival), []).append(found)
        for tree in trees:
            rounds.drained.setdefault(tree.name, []).append(cost_rounds.drained(tree, 2 * args.calls))
        start, replay = cost_rounds.waits(max(20, args.calls // 50))
        rounds.starts.append(start)
        rounds.replays.append(replay)
    return rounds


def installed(rivals: Sequence[Rival]) -> list[Rival]:
    for missing in (rival for rival in rivals if not rival.is_installed):
        print(f"not installed (dependency group bench), left out: {missing.name}")
    return [rival for rival in rivals if rival.is_installed]


def label(rival: Rival) -> str:
    """Its name alone: the first word."""
    return rival.name.replace(",", " ").split()[0]


def other_server(found: dict[str, Instructions]) -> list[str]:
    others = {counted.server for counted in found.values()} - {PINNED}
    return [f"the instructions are those of {', '.join(sorted(others))}, and {PINNED} is pinned"] if others else []


def show_instructions(found: dict[str, Instructions], most: int) -> None:
    for name, counted in found.items():
        steps = ", ".join(f"{step} {number / 1000:.0f}k" for step, number in counted.steps.items())
        print(f"{name}: {counted.total / 1000:,.0f}k instructions a call on {counted.server} ({steps})")
    if found:
        over = found[OURS].total > most
        print(f"{'ABOVE' if over else 'within'} the bar of {most / 1000:,.0f}k instructions a call")


def show(rounds: Rounds) -> None:
    print(f"\n{'a call':10}" + "".join(f"{name:>23}" for name in COLUMNS))
    for name in rounds.costs:
        print(f"{name:10}" + "".join(f"{spread(rounds.column(name, column), 0):>23}" for column in COLUMNS))
    for name, found in rounds.drained.items():
        rate, server = [it.calls_per_s for it in found], [it.server_us for it in found]
        print(f"{name}: two light clients drain {spread(rate, 0)} calls/s, {spread(server, 0)} us of the server each")
    print(f"submit to handler start: {spread(rounds.starts)} durable SETs sent in a row")
    print(f"a replay: {spread(rounds.replays)} of redis-py's GETs")
    for words, ratios in comparisons(rounds).items():
        print(f"{words}: {spread(ratios)}")
    print(f"control, ms of a durable SET after a pause: {spread(rounds.controls)}")


def comparisons(rounds: Rounds) -> dict[str, list[float]]:
    """Ratios of this checkout to the others, round by round."""
    found = {}
    for column, of in (("server_us", min), ("worker_us", min), ("calls_per_s", max)):
        if best := rounds.best_peer(column, of):
            found[f"{column} over the best peer's ({best})"] = rounds.ratio(OURS, best, column)
    if label(RQ) in rounds.costs:
        found["calls_per_s over RQ's"] = rounds.ratio(OURS, label(RQ), "calls_per_s")
    if BEFORE in rounds.costs:
        found["server_us over before"] = rounds.ratio(OURS, BEFORE)
        pairs = zip(rounds.drained[OURS], rounds.drained[BEFORE], strict=True)
        found["drain ceiling over before"] = [now.calls_per_s / then.calls_per_s for now, then in pairs]
    return found


def spread(numbers: Sequence[float], digits: int = 2) -> str:
    middle, least, most = (f"{each:.{digits}f}" for each in (statistics.median(numbers), min(numbers), max(numbers)))
    return f"{middle} [{least}-{most}]"


def summary(rounds: Rounds) -> dict[str, Any]:
    """The last line's fields: medians; what could not be measured is null."""
    found = of_tree(rounds, OURS)
    found["peers_server_us_per_call"] = {name: round(rounds.median(name, "server_us"), 1) for name in rounds.peers}
    found |= {
        "peers_worker_us_per_call": {name: round(rounds.median(name, "worker_us"), 1) for name in rounds.peers},
        "peers_calls_per_s": {name: round(rounds.median(name, "calls_per_s")) for name in rounds.peers},
        "start_in_sets": round(statistics.median(rounds.starts), 2),
        "replay_over_get": round(statistics.median(rounds.replays), 2),
        "ratios": {words: round(statistics.median(each), 3) for words, each in comparisons(rounds).items()},
        "rounds": len(rounds.controls),
        "control_ms": [round(each, 3) for each in rounds.controls],
        "before": of_tree(rounds, BEFORE) if BEFORE in rounds.costs else None,
    }
    return found


def of_tree(rounds: Rounds, name: str) -> dict[str, Any]:
    server = rounds.column(name, "server_us")
    return {
        "server_us_per_call": round(statistics.median(server), 1),
        "server_us_per_call_least_and_most": [round(min(server), 1), round(max(server), 1)],
        **of_instructions(rounds.instructions, name),
        "worker_us_per_call": round(rounds.median(name, "worker_us"), 1),
        "aof_bytes_per_call": round(rounds.median(name, "aof_bytes")),
        "bytes_per_queued_call": round(rounds.median(name, "queued_bytes")),
        "bytes_per_settled_call": round(rounds.median(name, "settled_bytes")),
        "calls_per_s": round(rounds.median(name, "calls_per_s")),
        "drain_calls_per_s": round(statistics.median(it.calls_per_s for it in rounds.drained[name])),
        "drain_server_us_per_call": round(statistics.median(it.server_us for it in rounds.drained[name]), 1),
    }


def of_instructions(found: dict[str, Instructions], name: str = OURS) -> dict[str, Any]:
    counted = found.get(name)
    steps = {step: round(number) for step, number in counted.steps.items()} if counted else None
    return {"instructions_per_call": round(counted.total) if counted else None, "instructions_per_step": steps}


if __name__ == "__main__":
    sys.exit(main())
