"""`toolonce recover`: runs the recovery of workers now, and accepts the loss after the store lost writes."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import TYPE_CHECKING

from ....store.model.keys import Timed
from ....store.model.states import State
from ....store.operations.operation import Invocation
from ....store.operations.operators import Actor, Decision, Expected, accept_call, accept_loss
from ....store.operations.queries import Record, stats
from ....store.operations.recovery import StepResult, reclaim, repush, tick
from ...errors import Usage
from ...health.counters import queues, read_stats
from ...options import actor, selection
from ...options.listing import server_now
from ...options.parser import add_json, command
from ...options.settings import open_store
from ...views import render

if TYPE_CHECKING:
    from ....store.connections.connection import Connection
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce recover --dry-run        what a sweep would do
toolonce recover                  end expired leases, push lost pointers again, apply deadlines and retention
toolonce recover --accept-loss --reason 'compared with the billing system'
toolonce recover --accept-loss 3f9a2c41d07b --reason 'is not in the billing system'       this call only
toolonce recover --accept-loss --tool lookup_price --reason 'harmless when repeated'      all held calls of this tool
"""
SWEEPER = "toolonce recover"
GRACE_MS = 1_000
"""Milliseconds between the two reads that find a lost pointer; a running worker claims within a few ms of taking it."""
GRACE_SLACK_S = 0.05


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers, "recover", "Recover expired leases, lost pointers and due deadlines now", examples=EXAMPLES
    )
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help="after a restore or failover: let held mutating calls run; with keys or filters only these calls",
    )
    selection.add_options(parser)
    actor.add_options(parser)
    add_json(parser, f"what was found or done, as NAME: COUNT; with --accept-loss for single calls {selection.SHAPE}")


def run(args: argparse.Namespace) -> int:
    chosen = bool(args.keys) or selection.has_filters(args)
    if chosen and not args.accept_loss:
        raise Usage("keys and filters are for --accept-loss only; without it the sweep covers all calls")
    _require_reason(args)
    with open_store(args) as connection:
        if chosen:
            return _accept_calls(args, connection)
        if args.dry_run:
            counts = due(connection)
        elif args.accept_loss:
            counts = _accept(args, connection)
        else:
            counts = sweep(connection)
    if args.json:
        render.show_json(counts)
    else:
        render.show_pairs({name.replace("_", " "): number for name, number in counts.items()})
    return 0


def due(connection: Connection) -> dict[str, int]:
    """Count what a sweep would find. Reads only."""
    now, space = server_now(connection), connection.space
    found = {name: int(connection.command("ZCOUNT", space.timed(name), "-inf", now)) for name in _TIMED}
    counted = read_stats(connection)
    return {
        "leases_run_out": found["leases"],
        "delayed_calls_due": found["delayed"],
        "deadlines_passed": found["deadlines"],
        "approvals_passed": found["approvals"],
        "store_went_back": int("went_back" in counted.flags),
    }


_TIMED: tuple[Timed, ...] = ("leases", "delayed", "deadlines", "approvals")


def sweep(connection: Connection) -> dict[str, int]:
    """Run one sweep in bounded steps; safe while workers run."""
    space, counts = connection.space, Counter[str]()
    _exhaust(connection, counts, reclaim(space, SWEEPER))
    while (step_result := connection.run(tick(space))[0]).more:
        counts.update(step_result.counts)
    counts.update(step_result.counts)
    names = queues(connection)
    for name in names:
        _exhaust(connection, counts, repush(space, name, grace_ms=GRACE_MS))
    if connection.run(stats(space)).stored[State.QUEUED]:
        time.sleep(GRACE_MS / 1000 + GRACE_SLACK_S)
        for name in names:
            _exhaust(connection, counts, repush(space, name, grace_ms=GRACE_MS))
    return dict(counts)


def _exhaust(connection: Connection, counts: Counter[str], step: Invocation[StepResult]) -> None:
    while (step_result := connection.run(step)).more:
        counts.update(step_result.counts)
    counts.update(step_result.counts)


def _require_reason(args: argparse.Namespace) -> None:
    if args.accept_loss and not args.dry_run and not args.reason.strip():
        raise Usage("--accept-loss needs --reason: say what you compared before calls may run again")


def _accept_calls(args: argparse.Namespace, connection: Connection) -> int:
    """Release single calls; the others stay held."""
    plans = [_plan(found) for found in selection.records(args, connection, (State.HELD,))]

    def act(plan: selection.Plan, by: Actor) -> Decision:
        expected = Expected(plan.call.key, plan.call.state, plan.call.fence)
        return connection.run(accept_call(connection.space, expected, by))

    return selection.carry_out(args, plans, act, by=actor.actor_of(args))


def _plan(found: Record) -> selection.Plan:
    if found.state is State.HELD and found.fields.reason == "store_went_back":
        return selection.Plan(found, True, "would run, for a second time if it ran before the store lost writes")
    return selection.Plan(found, False, "is not held because the store lost writes")


def _accept(args: argparse.Namespace, connection: Connection) -> dict[str, int]:
    selection.confirm(
        args,
        "calls whose records were lost may run a second time; have you compared with the systems that they change?",
    )
    by, freed, stood = actor.actor_of(args), 0, False
    while True:
        flag, now_freed, left = connection.run(accept_loss(connection.space, by))
        stood, freed = stood or flag, freed + now_freed
        if not left:
            return {"store_went_back": int(stood), "calls_freed": freed}
