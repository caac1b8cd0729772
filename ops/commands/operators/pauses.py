"""`toolonce pause` and `toolonce resume`: let no call of a tool, a queue or a tenant begin, and let them go on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ....store.model.controls import ControlKind, check_target
from ....store.operations.controls import pause, resume
from ....store.operations.tools import published
from ...errors import Usage
from ...health import pauses
from ...health.counters import queues
from ...health.pauses import read_pauses
from ...options import actor
from ...options.listing import server_now
from ...options.parser import add_json, command
from ...options.settings import open_store
from ...views import render

if TYPE_CHECKING:
    from ....store.connections.connection import Connection
    from ....store.operations.operators import Actor
    from ...options.parser import Subparsers

TARGETS = "tool:NAME, queue:NAME or tenant:NAME"
SHAPE = "{pauses: [{target, paused, since, by, at, reason, queued, parked}]}"
PAUSE = """
toolonce pause                                     what is paused, by whom, since when; how many calls wait
toolonce pause tool:pay --reason 'the bank is down'
toolonce pause queue:billing tenant:acme
toolonce resume tool:pay                           its calls go on
"""
RESUME = """
toolonce resume tool:pay
toolonce resume queue:billing tenant:acme
"""


def add_parser(subparsers: Subparsers) -> None:
    for name, summary, number, targets, examples in (
        ("pause", "Let no call of a tool, queue or tenant begin; what runs goes on, what waits does not expire", "*",
         f"{TARGETS}; without any, what is paused is shown", PAUSE),
        ("resume", "End pauses; their calls go on, the oldest first", "+", TARGETS, RESUME),
    ):  # fmt: skip
        parser = command(subparsers, name, summary, examples=examples)
        parser.add_argument("targets", nargs=number, metavar="TARGET", help=targets)
        actor.add_author(parser)
        add_json(parser, SHAPE)
        parser.set_defaults(ends=name == "resume")


def run(args: argparse.Namespace) -> int:
    _check(args)
    with open_store(args) as connection:
        by = actor.actor_of(args)
        for target in dict.fromkeys(args.targets):
            if args.ends:
                _resume(connection, target, by)
            else:
                connection.run(pause(connection.space, target, by))
                _note_unknown(connection, target)
        rows, now = read_pauses(connection, args.targets), server_now(connection)
    if args.json:
        render.show_json({"pauses": [pauses.as_json(row) for row in rows]})
    elif rows and not args.ends:
        render.show_table(pauses.COLUMNS, (pauses.cells(row, now) for row in rows))
    elif not args.targets:
        render.say(f"nothing is paused in {connection.place}")
    return 0


def _check(args: argparse.Namespace) -> None:
    for target in args.targets:
        try:
            check_target(ControlKind.PAUSE, target)
        except ValueError as error:
            raise Usage(str(error)) from error
    if args.reason and not args.targets:
        raise Usage("--reason is for what is paused, for example: toolonce pause tool:pay --reason R")


def _resume(connection: Connection, target: str, by: Actor) -> None:
    (was,) = read_pauses(connection, [target])
    connection.run(resume(connection.space, target, by))
    if was.setting:
        render.say(f"{target} goes on: it was {was.told(server_now(connection))}; {was.calls.queued} calls wait")
    else:
        render.say(f"{target} was not paused in {connection.place}")


def _note_unknown(connection: Connection, target: str) -> None:
    sort, _, name = target.partition(":")
    if sort == "tool" and name not in connection.run(published(connection.space)).tools:
        render.say(f"paused, but no worker has published a tool {name!r} yet; is the name right?")
    if sort == "queue" and name not in queues(connection):
        render.say(f"paused, but no tool names a queue {name!r} yet; is the name right?")
