"""`toolonce stats`: counts calls by state, tool and queue, and shows how long the oldest have waited."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ....store.model.states import State
from ....store.operations.queries import Stats
from ...health import controls, pauses
from ...health.controls import read_controls
from ...health.counters import read_stats
from ...health.pauses import read_pauses
from ...metrics.rates import rates
from ...options.listing import behind_doubt, oldest
from ...options.parser import add_json, command
from ...options.settings import open_store
from ...views import render

if TYPE_CHECKING:
    from ....store.connections.connection import Connection
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce stats
toolonce stats --json | jq .states.unknown
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(subparsers, "stats", "Count calls by state, tool and queue", examples=EXAMPLES)
    add_json(
        parser,
        "{admitted, settled, open, balanced, states, stored, oldest_ms, tools, queues: {NAME: {waiting, taken}}, "
        "delayed, fence, flags, per_second, held_behind_doubt, controls, pauses}",
    )


def run(args: argparse.Namespace) -> int:
    with open_store(args) as connection:
        got = read_stats(connection)
        view = {**as_json(got), "per_second": rates(connection, got.read_at)}
        view["held_behind_doubt"] = _count_behind_doubt(connection, got)
        limits, paused = read_controls(connection), read_pauses(connection)
    view["controls"] = [controls.as_json(row) for row in limits]
    view["pauses"] = [pauses.as_json(row) for row in paused]
    if args.json:
        render.show_json(view)
    else:
        if not got.counts.get("admitted", 0):
            render.say(f"no calls in {connection.place}")
        _show(view)
        controls.show(limits, got.read_at)
        pauses.show(paused, got.read_at)
    return 0


def _count_behind_doubt(connection: Connection, got: Stats) -> int:
    """The number of calls behind an unknown call, among the oldest `LOOK_AT` held ones."""
    if not (got.stored[State.HELD] and got.stored[State.UNKNOWN]):
        return 0
    return len(behind_doubt(oldest(connection, State.HELD)))


def as_json(got: Stats) -> dict[str, Any]:
    """The counters as JSON; ages in ms. `balanced`: admitted = settled + open (G2)."""
    states = {state: got.counts.get(f"state:{state}", 0) for state in State}
    oldest = {state: got.read_at - at if at else None for state, at in got.oldest_at.items() if not state.is_settled}
    return {
        "admitted": got.counts.get("admitted", 0),
        "settled": got.counts.get("settled", 0),
        "open": got.open,
        "balanced": got.balanced,
        "states": states,
        "stored": got.stored,
        "oldest_ms": oldest,
        "tools": _by_tool(got.counts),
        "queues": {name: {"waiting": waiting, "taken": taken} for name, (waiting, taken) in got.queues.items()},
        "delayed": got.delayed,
        "fence": got.fence,
        "flags": got.flags,
    }


def _by_tool(counts: dict[str, int]) -> dict[str, dict[str, int]]:
    tools: dict[str, dict[str, int]] = {}
    for name, number in counts.items():
        kind, _, rest = name.partition(":")
        if kind == "tool" and number:
            state, _, tool = rest.partition(":")
            tools.setdefault(tool, {})[state] = number
    return dict(sorted(tools.items()))


def _show(view: dict[str, Any]) -> None:
    print(f"{view['admitted']} admitted = {view['settled']} settled + {view['open']} open")
    if not view["balanced"]:
        print("the counters do not add up: report this with the output of `toolonce doctor --json`")
    if view["states"][State.UNKNOWN]:
        print(f"{view['states'][State.UNKNOWN]} unknown: see `toolonce calls --state unknown`")
    if view["held_behind_doubt"]:
        print(f"{view['held_behind_doubt']} held behind unknown calls: see `toolonce calls --state held`")
    if "went_back" in view["flags"]:
        print("the store has lost writes: mutating calls are held; see `toolonce recover --help`")
    per_second = view["per_second"]
    print("per second: " + ", ".join(f"{per_second[name]:g} {name}" for name in ("admitted", "claimed", "settled")))
    print()
    rows = [
        (render.state(state), number, _age(view["oldest_ms"].get(state))) for state, number in view["states"].items()
    ]
    render.show_table(("state", "calls", "oldest for"), rows)
    if view["tools"]:
        print()
        columns = [state for state in State if any(state in row for row in view["tools"].values())]
        rows_ = [(tool, *(row.get(state, "") for state in columns)) for tool, row in view["tools"].items()]
        render.show_table(("tool", *columns), rows_)
    print()
    queues_ = [(name, queue["waiting"], queue["taken"]) for name, queue in view["queues"].items()]
    render.show_table(("queue", "waiting", "being claimed"), queues_)


def _age(milliseconds: int | None) -> str:
    return "" if milliseconds is None else render.age(milliseconds)
