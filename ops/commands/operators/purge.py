"""`toolonce purge`: removes the content of settled calls before their retention ends."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ....store.connections.memory_watermark import Memory, read_memory
from ....store.model.outcomes import Failure
from ....store.model.states import SETTLED, State
from ....store.operations.operators import Actor, Decision, Expected, resolve
from ....store.operations.recovery import purge
from ...errors import Usage
from ...options import actor, selection
from ...options.parser import add_json, command
from ...options.selection import Plan
from ...options.settings import open_store
from ...views import render

if TYPE_CHECKING:
    from ....store.connections.connection import Connection
    from ....store.operations.queries import Record
    from ...options.parser import Subparsers

MB = 1_000_000

EXAMPLES = """
toolonce purge --state succeeded --older-than 2d --yes
toolonce purge --scope 'tenant-7/*' --dry-run            all settled calls of a tenant
toolonce purge 3f9a2c41d07b --force --reason 'a test'    also if unknown: it is settled as failed first, in your name
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "purge",
        "Remove arguments, results and history of settled calls; a mark stays, so that none runs again",
        examples=EXAMPLES,
    )
    selection.add_options(parser)
    parser.add_argument("--force", action="store_true", help="unknown calls as well; they are settled as failed first")
    actor.add_options(parser)
    add_json(parser, selection.SHAPE)


def run(args: argparse.Namespace) -> int:
    if args.force and not args.reason.strip() and not args.dry_run:
        raise Usage("--force needs --reason, since it settles unknown calls in your name")
    states = (*SETTLED, State.UNKNOWN) if args.force else tuple(SETTLED)
    with open_store(args) as connection:
        plans = [plan(call, force=args.force) for call in selection.records(args, connection, states)]

        def act(one: Plan, by: Actor) -> Decision:
            return _forget(connection, one.call, by)

        before = read_memory(connection)
        code = selection.carry_out(args, plans, act, by=actor.actor_of(args))
        if not args.dry_run and (line := freed(before, read_memory(connection))):
            render.say(line)
        return code


def freed(before: Memory | None, after: Memory | None) -> str:
    """The memory that the server reports before and after; "" where it does not report it. Pure."""
    if before is None or after is None:
        return ""
    limit = f" of {after.allowed / MB:.1f} MB" if after.allowed else ""
    return f"Redis uses {after.used / MB:.1f} MB{limit}, {(before.used - after.used) / MB:.1f} MB less than before"


def plan(call: Record, *, force: bool) -> Plan:
    """What purging would do to this call. Pure."""
    if call.fields.forgotten:
        return Plan(call, False, "is already forgotten")
    if call.state is State.UNKNOWN:
        words = "would be settled as failed and forgotten" if force else "is unknown: resolve it, or use --force"
        return Plan(call, force, words)
    if not call.state.is_settled:
        return Plan(call, False, f"is {call.state}: cancel it first")
    return Plan(call, True, "would be forgotten")


def _forget(connection: Connection, call: Record, by: Actor) -> Decision:
    if call.state is State.UNKNOWN:
        given_up = Failure("purged", "settled by an operator; nobody knows whether it happened")
        done = connection.run(resolve(connection.space, Expected(call.key, call.state, call.fence), given_up, by))
        if done.refused:
            return done
    (said,) = connection.run(purge(connection.space, [call.key]))
    return Decision("changed", "open") if said == "open" else Decision(said)
