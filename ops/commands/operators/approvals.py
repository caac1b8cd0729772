"""`toolonce approve` and `toolonce deny`: decide about calls that are held for approval."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ....store.model.states import State
from ....store.operations.operators import Actor, Decision, Question, approve, deny
from ...options import actor, selection
from ...options.parser import add_json, command
from ...options.selection import Plan
from ...options.settings import open_store
from ...views import render
from ...views.call_view import masked

if TYPE_CHECKING:
    from ....store.operations.queries import Record
    from ...options.parser import Subparsers

APPROVE = """
toolonce approve 3f9a2c41d07b                     shows the call and asks for confirmation
toolonce approve 3f9a2c41d07b... --yes --reason 'ticket 812'
"""
DENY = """
toolonce deny 3f9a2c41d07b --reason 'not this customer'
"""


def add_parser(subparsers: Subparsers) -> None:
    for name, summary, examples in (
        ("approve", "Let held calls run once, with exactly these arguments", APPROVE),
        ("deny", "Refuse held calls, and tell the model", DENY),
    ):
        parser = command(subparsers, name, summary, examples=examples)
        selection.add_options(parser)
        actor.add_options(parser)
        add_json(parser, selection.SHAPE)
        parser.set_defaults(decision=name)


def run(args: argparse.Namespace) -> int:
    decide = approve if args.decision == "approve" else deny
    with open_store(args) as connection:
        plans = [plan(call, args.decision) for call in selection.records(args, connection, (State.HELD,))]
        if not args.dry_run and args.decision == "approve" and any(one.will for one in plans) and not _shown(args):
            _show_arguments(args, plans)
            selection.confirm(args, "let them run?")

        def act(one: Plan, by: Actor) -> Decision:
            shown = Question(one.call.fields.reason, one.call.fence)
            return connection.run(decide(connection.space, one.call.key, one.call.idempotency_key, by, shown=shown))

        return selection.carry_out(args, plans, act, by=actor.actor_of(args))


def plan(call: Record, decision: str) -> Plan:
    """What the decision would do to this call. Pure."""
    if call.state is State.HELD and (first := call.fields.follows[:12]):
        return Plan(
            call, False, f"follows call {first} by its unique key, and gets its outcome: see `toolonce call {first}`"
        )
    if call.state is State.HELD and call.fields.reason in ("approval", "duplicate"):
        return Plan(call, True, "would run" if decision == "approve" else "would be refused")
    if by := call.fields.decided_by:
        return Plan(call, False, f"{by} has already decided; it is {call.state}")
    return Plan(call, False, f"does not wait for approval: it is {call.state} {call.fields.reason}".rstrip())


def _shown(args: argparse.Namespace) -> bool:
    """Whether the operator has seen the arguments: whole idempotency keys were given, which identify them."""
    return bool(args.keys) and all("-" in key for key in args.keys)


def _show_arguments(args: argparse.Namespace, plans: list[Plan]) -> None:
    if not args.json:
        for one in plans:
            render.show(f"{one.call.fields.tool} {render.json_line(masked(one.call.fields.args))}")
