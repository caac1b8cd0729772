"""`toolonce cancel`: cancels calls that have not started, and asks running ones to stop."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ....store.model.states import State
from ....store.operations.operators import Actor, Decision, Expected, cancel
from ...options import actor, selection
from ...options.parser import add_json, command
from ...options.selection import Plan
from ...options.settings import open_store

if TYPE_CHECKING:
    from ....store.operations.queries import Record
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce cancel 3f9a2c41d07b --reason 'the customer has changed her mind'
toolonce cancel --scope 'tenant-7/*' --state queued --dry-run
"""
CANCELLABLE = (State.HELD, State.QUEUED, State.RUNNING)


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers, "cancel", "Cancel calls before they start, or ask running ones to stop", examples=EXAMPLES
    )
    selection.add_options(parser)
    actor.add_options(parser)
    add_json(parser, selection.SHAPE)


def run(args: argparse.Namespace) -> int:
    with open_store(args) as connection:
        plans = [plan(call) for call in selection.records(args, connection, CANCELLABLE)]

        def act(one: Plan, by: Actor) -> Decision:
            return connection.run(cancel(connection.space, Expected(one.call.key, one.call.state, one.call.fence), by))

        return selection.carry_out(args, plans, act, by=actor.actor_of(args))


def plan(call: Record) -> Plan:
    """What cancelling would do to this call. Pure."""
    match call.state:
        case State.HELD | State.QUEUED:
            return Plan(call, True, "would never run")
        case State.RUNNING:
            return Plan(call, True, "would be asked to stop; it may still end in any way")
        case State.UNKNOWN:
            return Plan(call, False, "has started: find out what happened, then resolve it")
        case _:
            by = call.fields.settled_by
            return Plan(call, False, f"is {call.state}{f' (by {by})' if by else ''}: its outcome is final")
