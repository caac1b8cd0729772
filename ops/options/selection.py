"""Selects the calls that a command changes: by keys or filters, with a plan first and a confirmation before many calls.

Decides selection and confirmation for every command that changes calls. Must not know what a command does to a call.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ...store.connections.connection import Connection
from ...store.model.states import State
from ...store.operations.operators import Actor, Decision
from ...store.operations.queries import Record, record
from ..errors import OpsError, Unsafe, Usage
from ..exit_codes import ExitCode
from ..views import render
from ..views.render import SHOWN_DIGITS
from .actor import require_done, without_secrets
from .durations import whole_number
from .listing import STEP, add_filters, walk, wanted
from .lookup import get_record

SHAPE = "{plan: [{call, name, state, fence, will, plan}], done: [{call, verdict, said}]}"
BULK_MOST = 1_000
"""Most calls that one command changes; more calls need several commands."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a command would do to one call. `will` False: nothing, and `words` say why."""

    call: Record
    will: bool
    words: str

    def as_json(self) -> dict[str, object]:
        return {
            "call": self.call.key, "name": self.call.fields.tool, "state": self.call.state, "fence": self.call.fence,
            "will": self.will, "plan": self.words,
        }  # fmt: skip


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Add KEY ..., filters and --limit, for a command that selects calls."""
    parser.add_argument("keys", nargs="*", metavar="KEY", help="call keys or their first digits; or use filters")
    add_filters(parser).add_argument(
        "--limit", type=whole_number, default=BULK_MOST, metavar="N",
        help=f"most calls that filters select ({BULK_MOST})",
    )  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the selection, --dry-run and --yes, for a command that changes calls."""
    add_choice(parser)
    group = parser.add_argument_group("how")
    group.add_argument("--dry-run", action="store_true", help="show what would be done, and do nothing")
    group.add_argument("--yes", action="store_true", help="do not ask for confirmation; needed without a terminal")


def records(args: argparse.Namespace, connection: Connection, default: tuple[State, ...]) -> Iterator[Record]:
    """The calls of the given keys, or those that the filters find.

    Raises:
        Usage: neither keys nor filters were given, or both.
        NotFound: there is no call with a given key.
    """
    filters = has_filters(args)
    if bool(args.keys) == filters:
        raise Usage(
            "give call keys, or select calls by filters" if not filters else "give call keys or filters, not both"
        )
    if args.keys:
        yield from (get_record(connection, typed) for typed in args.keys)
        return
    wish = replace(wanted(args, connection, default), step=min(STEP, args.limit))
    rows, some = walk(connection, wish), False
    for row in islice(rows, args.limit):
        if found := connection.run(record(connection.space, row.key)):
            some = True
            yield found
    if not some:
        render.say(f"no such calls in {connection.place}")
    if next(rows, None):
        render.say(f"the filters find more than {args.limit} calls; only the newest of them are selected (--limit)")


def has_filters(args: argparse.Namespace) -> bool:
    """Whether calls are selected by filters."""
    return any((args.state, args.tool, args.scope, args.worker, args.error, args.since, args.older_than, args.paused))


def carry_out(
    args: argparse.Namespace, plans: Sequence[Plan], act: Callable[[Plan, Actor], Decision], *, by: Actor
) -> ExitCode:
    """Show the plan and carry it out call by call, after a confirmation where one is needed.

    Raises:
        Unsafe: it was not confirmed, or needs a confirmation and there is no terminal.
    """
    willing = [plan for plan in plans if plan.will]
    if not args.json:
        _show(plans)
    if args.dry_run or not willing:
        if args.json:
            render.show_json({"plan": [plan.as_json() for plan in plans], "done": []})
        return ExitCode.DONE if plans and len(willing) == len(plans) else ExitCode.ENDED_BADLY
    confirm(args, f"do this to {len(willing)} of {len(plans)} calls?", needed=len(plans) > 1 or not args.keys)
    results = [_attempt(plan, by, act) for plan in willing]
    if args.json:
        render.show_json({"plan": [plan.as_json() for plan in plans], "done": [result for _, result in results]})
    else:
        for _, result in results:
            render.show(f"{str(result['call'])[:SHOWN_DIGITS]}  {result['said']}")
    return ExitCode.DONE if all(good for good, _ in results) and len(willing) == len(plans) else ExitCode.ENDED_BADLY


def confirm(args: argparse.Namespace, question: str, *, needed: bool = True) -> None:
    """Ask for confirmation, unless --yes was given or none is needed.

    Raises:
        Unsafe: the answer is no, or there is no terminal.
    """
    if args.yes or not needed:
        return
    if not sys.stdin.isatty():
        raise Unsafe(f"{question} there is no terminal to confirm it: add --yes, or --dry-run to see the plan")
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise Unsafe("not confirmed; nothing was done")
    args.yes = True  # a command asks once


def request_of(by: Actor, call: str) -> Actor:
    """The actor with a request id for this call, which is the same when the command is repeated."""
    return Actor(by.actor, by.reason, f"{by.request_id}:{call}")


def _attempt(plan: Plan, by: Actor, act: Callable[[Plan, Actor], Decision]) -> tuple[bool, dict[str, object]]:
    try:
        said = without_secrets(request_of(by, plan.call.key), plan.call)
        done = require_done(act(plan, said), plan.call.key)
    except OpsError as error:
        return False, {"call": plan.call.key, "verdict": "not done", "said": str(error)}
    return True, {"call": plan.call.key, "verdict": done.verdict, "said": done.verdict}


def _show(plans: Sequence[Plan]) -> None:
    if not plans:
        return  # `records` has printed it
    rows = (
        (
            plan.call.key[:SHOWN_DIGITS],
            plan.call.fields.tool,
            render.state(plan.call.state),
            "yes" if plan.will else "no",
            plan.words,
        )
        for plan in plans
    )
    render.show_table(("call", "tool", "state", "acts", "plan"), rows)
