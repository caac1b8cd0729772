"""`toolonce retry`: runs failed or unknown calls again, because a person decided it."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from ....store.model.specs import Effect, Published, ToolSpec
from ....store.model.states import State
from ....store.operations.operators import Actor, Decision, Expected, retry
from ....store.operations.tools import published
from ....store.schema.validation import validate
from ...errors import Usage
from ...options import actor, selection
from ...options.parser import add_json, command
from ...options.selection import Plan
from ...options.settings import open_store

if TYPE_CHECKING:
    from ....store.operations.queries import Record
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce retry 3f9a2c41d07b --dry-run
toolonce retry 3f9a2c41d07b --reason 'the bank says it never arrived'
toolonce retry --state failed --tool pay --since 1h --reason 'the bank is back' --yes
"""
RETRYABLE = (State.FAILED, State.UNKNOWN)


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers, "retry", "Run failed or unknown calls again, after showing what would happen", examples=EXAMPLES
    )
    selection.add_options(parser)
    actor.add_options(parser)
    add_json(parser, selection.SHAPE)


def run(args: argparse.Namespace) -> int:
    if not args.dry_run and not args.reason.strip():
        raise Usage("a retry needs --reason, which the history keeps (or use --dry-run)")
    with open_store(args) as connection:
        specs = connection.run(published(connection.space))
        found = selection.records(args, connection, RETRYABLE)
        plans = [plan(call, specs) for call in found]
        if not args.dry_run and any(one.will and is_risky(one.call) for one in plans):
            question = "some of these may have happened already and would happen twice; run them again?"
            selection.confirm(args, question)

        def act(one: Plan, by: Actor) -> Decision:
            return connection.run(retry(connection.space, Expected(one.call.key, one.call.state, one.call.fence), by))

        return selection.carry_out(args, plans, act, by=actor.actor_of(args))


def plan(call: Record, specs: Published) -> Plan:
    """What a retry would do to this call. Pure."""
    if call.fields.forgotten:
        return Plan(call, False, "its arguments were removed at the end of its retention: submit it again")
    match call.state:
        case State.SUCCEEDED:
            return Plan(call, False, "would be replayed: it has succeeded")
        case State.REFUSED | State.CANCELLED | State.EXPIRED:
            return Plan(
                call, False, f"is {call.state}, which is final; let the model call the tool again in a new turn"
            )
        case State.HELD | State.QUEUED | State.RUNNING:
            return Plan(call, False, f"is {call.state} and will go on by itself")
    spec = specs.tools.get(call.fields.tool)
    if spec is None:
        return Plan(call, True, "would wait, since no worker has published this tool")
    if not call.fields.secret and (fault := validate(spec.schema, _arguments(call))):
        return Plan(call, False, f"refused: the tool has changed; {fault.message}")
    if is_risky(call):
        return Plan(call, True, f"would run AGAIN{_once_approved(call, spec)}; it may have happened already")
    attempt = call.fields.attempt + 1
    return Plan(call, True, f"would run again as attempt {attempt}{_once_approved(call, spec)}")


def _once_approved(call: Record, spec: ToolSpec) -> str:
    """Text for a tool that needs approval, which each run needs again. (A hook in the worker may need one as well.)"""
    asks = spec.approval == "always" or bool(call.fields.duplicate_of)
    return ", after a person has approved it again" if asks else ""


def is_risky(call: Record) -> bool:
    """Whether a second run may do harm: an unknown mutating call may have happened."""
    return call.state is State.UNKNOWN and call.fields.effect == Effect.MUTATING


def _arguments(call: Record) -> object:
    return json.loads(call.fields.args or "{}")
