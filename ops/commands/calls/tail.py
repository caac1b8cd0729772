"""`toolonce tail`: prints each change of a call as it happens."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ....store.model.states import State
from ...metrics.events import Event, follow, recent
from ...options.durations import seconds_or_none, whole_number
from ...options.lookup import get_record
from ...options.parser import add_json, command
from ...options.settings import open_store
from ...views import render
from ...views.call_view import actor_of, move_of
from ...views.render import SHOWN_DIGITS

if TYPE_CHECKING:
    from ....store.connections.connection import Connection
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce tail                        until Ctrl-C
toolonce tail --tool pay --to unknown --json
toolonce tail --last 50 --for 0s     the last 50 events, then end
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(subparsers, "tail", "Follow every change of state, live", examples=EXAMPLES)
    parser.add_argument("--tool", metavar="T", help="only events of this tool")
    parser.add_argument(
        "--to", choices=[state.value for state in State], metavar="STATE", help="only changes into this state"
    )
    parser.add_argument("--call", metavar="KEY", help="only events of this call")
    parser.add_argument("--last", type=_last, default=10, metavar="N", help="start with the last N events (10)")
    parser.add_argument("--for", type=seconds_or_none, dest="span", metavar="SPAN", help="end after this time")
    add_json(parser, "one object per line, {call, at, op, tool, from, to, actor, ...}")


def run(args: argparse.Namespace) -> int:
    until = None if args.span is None else time.monotonic() + args.span
    with open_store(args) as connection:
        only = get_record(connection, args.call).key if args.call else None
        for event in _events(connection, args.last, until):
            got = event.facts.get
            if only in (None, event.call) and args.tool in (None, got("tool")) and args.to in (None, got("to")):
                print(_line(event.call, event.facts, as_json=args.json), flush=True)
    return 0


def _last(text: str) -> int:
    return 0 if text == "0" else whole_number(text)


def _events(connection: Connection, last: int, until: float | None) -> Iterator[Event]:
    """The last events and the following ones, until the time is over."""
    known = recent(connection, last)
    yield from known[-last:] if last else ()
    place = known[-1].place if known else b"0-0"
    yield from follow(connection, place, lambda: until is None or time.monotonic() < until)


def _line(call: str, event: dict[str, Any], *, as_json: bool) -> str:
    if as_json:
        return render.json_text({"call": call, **event})
    words = (render.moment(event["at"]), call[:SHOWN_DIGITS], event.get("tool", ""), event.get("op", ""))
    return "  ".join(str(render.one_line(word)) for word in (*words, move_of(event), actor_of(event)) if word)
