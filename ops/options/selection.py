"""Which calls a command acts on, and whether it may: keys or filters, a plan first, a word before many are changed.

Decides selection and confirmation for every command that writes. What is done to a call is the command's own.
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
"""Calls that one command takes on; a larger work is done in steps, each looked at."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What would become of one call. `will` False: nothing is done to it, `words` say why."""

    call: Record
    will: bool
    words: str

    def as_json(self) -> dict[str, object]:
        return {
            "call": self.call.key, "name": self.call.fields.tool, "state": self.call.state, "fence": self.call.fence,
            "will": self.will, "plan": self.words,
        }  # fmt: skip


def add_choice(parser: argparse.ArgumentParser) -> None:
    """KEY ..., or filters, and --limit: which calls; for a command that only looks at them."""
    parser.add_argument("keys", nargs="*", metavar="KEY", help="call keys, or the first digits; or use filters")
    add_filters(parser).add_argument(
        "--limit", type=whole_number, default=BULK_MOST, metavar="N",
        help=f"most calls that filters may take ({BULK_MOST})",
    )  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """The choice, and --dry-run and --yes: for a command that changes calls."""
    add_choice(parser)
    group = parser.add_argument_group("how")
    group.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    group.add_argument("--yes", action="store_true", help="do not ask; needed where nobody can be asked")


def records(args: argparse.Namespace, connection: Connection, default: tuple[State, ...]) -> Iterator[Record]:
    """The calls that were named, or that the filters find.

    Raises:
        Usage: neither was given, or both.
        NotFound: a named call is not there.
    """
    filters = has_filters(args)
    if bool(args.keys) == filters:
        raise Usage("name calls, or choose them by filters" if not filters else "name calls or use filters, not both")
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
        render.say(f"the filters find more than {args.limit} calls; only the newest of them are taken (--limit)")


def has_filters(args: argparse.Namespace) -> bool:
    """Whether calls were chosen by filters."""
    return any((args.state, args.tool, args.scope, args.worker, args.error, args.since, args.older_than))


def carry_out(
    args: argparse.Namespace, plans: Sequence[Plan], act: Callable[[Plan, Actor], Decision], *, by: Actor
) -> ExitCode:
    """Show the plan; where it may be done, do it call by call and tell what came of each.

    Raises:
        Unsafe: it has to be confirmed, and nobody can be asked.
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
    """Ask, unless --yes was given or no word is needed.

    Raises:
        Unsafe: the answer is no, or nobody is there to answer.
    """
    if args.yes or not needed:
        return
    if not sys.stdin.isatty():
        raise Unsafe(f"{question} nobody is here to say yes: add --yes, or --dry-run to look first")
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise Unsafe("not confirmed; nothing was done")
    args.yes = True  # one answer is enough for one command


def request_of(by: Actor, call: str) -> Actor:
    """The actor for one call of many: a request id of its own, the same when the command is repeated."""
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
        return  # whoever looked for them has said so
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
