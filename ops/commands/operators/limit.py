"""`toolonce limit` and `toolonce rate`: show and set how many calls run at once, and how many start in a time."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from ....store.model.controls import ControlKind, check_target
from ....store.model.rates import Rate
from ....store.operations.controls import limit, queue_limit, rate
from ....store.operations.tools import published
from ...errors import Usage
from ...health import controls
from ...health.controls import ControlRow, read_controls
from ...options import actor
from ...options.durations import whole_number
from ...options.listing import server_now
from ...options.parser import add_json, command
from ...options.settings import open_store
from ...views import render

if TYPE_CHECKING:
    from ....store.connections.connection import Connection
    from ....store.model.controls import Setting
    from ....store.operations.operation import Invocation
    from ...options.parser import Subparsers

LIMIT = """
toolonce limit                                     all limits: what counts, who has set it, what the code says
toolonce limit tool:pay 5 --reason 'the bank asks for it'
toolonce limit 'tenant:*' 16                       of each tenant that has no limit of its own
toolonce limit tenant:acme 4
toolonce limit tool:pay --clear                    the code's number counts again
toolonce limit tenant:acme 500 --queued            refuse new calls while so many wait; also queue:NAME and 'tenant:*'
"""
RATE = """
toolonce rate                                      all rates: what counts, who has set it, what the code says
toolonce rate tool:search 100/min --reason 'our quota'
toolonce rate tool:search 5/s                      also N/h and N/d
toolonce rate tool:search --clear                  the code's rate counts again
"""
ROW = "[{kind, target, in_force, people, code, running, waiting}]"


def add_parser(subparsers: Subparsers) -> None:
    limits = command(
        subparsers, "limit", "Show or set how many calls of a tool or a tenant may run at once", examples=LIMIT
    )
    _add_options(
        limits, "NUMBER", "tool:NAME, tenant:NAME, or tenant:* for each other tenant",
        "most calls at once over all workers; it wins over the code's concurrency=, also over later deployments",
    )  # fmt: skip
    limits.add_argument(
        "--queued", action="store_true",
        help="the number is of calls that wait, of queue:NAME, tenant:NAME or tenant:*; beyond it new ones are "
        "refused. It wins over the queue limits that harnesses have",
    )  # fmt: skip
    add_json(limits, f"{{limits: {ROW}}}")
    limits.set_defaults(kind=ControlKind.LIMIT)
    rates = command(subparsers, "rate", "Show or set how many calls of a tool may start in a time", examples=RATE)
    _add_options(
        rates, "RATE", "tool:NAME",
        "most starts over all workers: N/s, N/min, N/h or N/d;"
        " it wins over the code's rate=, also over later deployments",
    )  # fmt: skip
    add_json(rates, f"{{rates: {ROW}}}")
    rates.set_defaults(kind=ControlKind.RATE)


def _add_options(parser: argparse.ArgumentParser, what: str, targets: str, help_text: str) -> None:
    parser.add_argument("target", nargs="?", metavar="TARGET", help=targets)
    read: Callable[[str], int | Rate] = whole_number if what == "NUMBER" else _rate
    parser.add_argument("value", nargs="?", type=read, metavar=what, help=help_text)
    parser.add_argument(
        "--clear", action="store_true", help="forget what people have set; the code's word counts again"
    )
    actor.add_author(parser)


def _rate(text: str) -> Rate:
    try:
        return Rate.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


_CHANGES: dict[ControlKind, Callable[..., Invocation[Setting | None]]] = {
    ControlKind.LIMIT: limit,
    ControlKind.QUEUE_LIMIT: queue_limit,
    ControlKind.RATE: rate,
}


def run(args: argparse.Namespace) -> int:
    kind: ControlKind = ControlKind.QUEUE_LIMIT if getattr(args, "queued", False) else args.kind
    kinds = [kind, ControlKind.QUEUE_LIMIT] if kind is ControlKind.LIMIT else [kind]
    _check(args, kind)
    with open_store(args) as connection:
        if args.clear or args.value is not None:
            _set(connection, args, kind)
        rows = [row for row in read_controls(connection, kinds) if args.target in (None, row.target)]
        now = server_now(connection)
    _show(rows, args, now, f"no {kind}{f' of {args.target}' if args.target else ''} in {connection.place}")
    return 0


def _set(connection: Connection, args: argparse.Namespace, kind: ControlKind) -> None:
    change = _CHANGES[kind]
    connection.run(change(connection.space, args.target, args.value, actor.actor_of(args)))
    sort, _, name = args.target.partition(":")
    if not args.clear and sort == "tool" and name not in connection.run(published(connection.space)).tools:
        render.say(f"set, but no worker has published a tool {name!r} yet; is the name right?")


def _show(rows: list[ControlRow], args: argparse.Namespace, now: int, none: str) -> None:
    if args.json:
        render.show_json({f"{args.kind}s": [controls.as_json(row) for row in rows]})
    elif rows:
        render.show_table(controls.COLUMNS, (controls.cells(row, now) for row in rows))
    else:
        render.say(none)


def _check(args: argparse.Namespace, kind: ControlKind) -> None:
    queued = kind is ControlKind.QUEUE_LIMIT
    example = "toolonce limit --queued tenant:acme" if queued else f"toolonce {kind} tool:pay"
    if args.target is not None:
        try:
            check_target(kind, args.target)
        except ValueError as error:
            raise Usage(str(error)) from error
    if args.clear and (args.target is None or args.value is not None):
        raise Usage(f"--clear takes a target and nothing else, for example: {example} --clear")
    if args.reason and args.value is None and not args.clear:
        value = "100/min" if kind is ControlKind.RATE else "5"
        raise Usage(f"--reason is for a {kind} that is set, for example: {example} {value} --reason R")
