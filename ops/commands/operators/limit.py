"""`toolonce limit`: shows, sets and clears limits: most calls of a tool or a tenant at once, over all workers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ....store.model.controls import ControlKind, check_target
from ....store.operations.controls import limit
from ....store.operations.tools import published
from ...errors import Usage
from ...health import controls
from ...health.controls import read_controls
from ...options import actor
from ...options.durations import whole_number
from ...options.listing import server_now
from ...options.parser import add_json, command
from ...options.settings import open_store
from ...views import render

if TYPE_CHECKING:
    from ....store.connections.connection import Connection
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce limit                                     all limits: what counts, who has set it, what the code says
toolonce limit tool:pay 5 --reason 'the bank asks for it'
toolonce limit 'tenant:*' 16                       of each tenant that has no limit of its own
toolonce limit tenant:acme 4
toolonce limit tool:pay --clear                    the code's number counts again
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers, "limit", "Show or set how many calls of a tool or a tenant may run at once", examples=EXAMPLES
    )
    parser.add_argument(
        "target", nargs="?", metavar="TARGET", help="tool:NAME, tenant:NAME, or tenant:* for each other tenant"
    )
    parser.add_argument(
        "number", nargs="?", type=whole_number, metavar="NUMBER",
        help="most calls at once over all workers; it wins over the code's concurrency=, also over later deployments",
    )  # fmt: skip
    parser.add_argument(
        "--clear", action="store_true", help="forget what people have set; the code's number counts again"
    )
    actor.add_author(parser)
    add_json(parser, "{limits: [{kind, target, in_force, people, code, running, waiting}]}")


def run(args: argparse.Namespace) -> int:
    _check(args)
    with open_store(args) as connection:
        if args.clear or args.number is not None:
            connection.run(limit(connection.space, args.target, args.number, actor.actor_of(args)))
            if not args.clear:
                _note_unknown_tool(connection, args.target)
        rows = [row for row in read_controls(connection, [ControlKind.LIMIT]) if args.target in (None, row.target)]
        now = server_now(connection)
    if args.json:
        render.show_json({"limits": [controls.as_json(row) for row in rows]})
    elif rows:
        render.show_table(controls.COLUMNS, (controls.cells(row, now) for row in rows))
    else:
        render.say(f"no limit{f' of {args.target}' if args.target else ''} in {connection.place}")
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.target is not None:
        try:
            check_target(ControlKind.LIMIT, args.target)
        except ValueError as error:
            raise Usage(str(error)) from error
    if args.clear and (args.target is None or args.number is not None):
        raise Usage("--clear takes a target and no number, for example: toolonce limit tool:pay --clear")
    if args.reason and args.number is None and not args.clear:
        raise Usage("--reason is for a limit that is set, for example: toolonce limit tool:pay 5 --reason R")


def _note_unknown_tool(connection: Connection, target: str) -> None:
    sort, _, name = target.partition(":")
    if sort == "tool" and name not in connection.run(published(connection.space)).tools:
        render.say(f"set, but no worker has published a tool {name!r} yet; is the name right?")
