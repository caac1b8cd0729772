"""`toolonce wait`: waits until a call, or every call of a turn, is settled or unknown."""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ....store.connections.waiting import Wakeups
from ....store.model.errors import StoreMisuse
from ....store.model.states import State
from ....stream.harness.client import Client
from ....stream.turns.turn import DIALECTS
from ...errors import NotFound, Usage
from ...exit_codes import ExitCode
from ...options.durations import seconds_or_none
from ...options.lookup import get_record
from ...options.parser import add_json, command, filled
from ...options.settings import open_store
from ...views import outcome_view, render
from ...views.call_view import as_json
from ..calls import call
from .submit import TURN_SHAPE, say_if_no_worker, show, wait_for

if TYPE_CHECKING:
    from ....store.connections.connection import Connection
    from ....store.operations.queries import Record
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce wait 3f9a2c41d07b                  exits 0 if it succeeded, else 1, also after the timeout
toolonce wait 3f9a2c41d07b --timeout 5m --json
toolonce wait --scope tenant-1/chat-42 resp_abc123 --replies --dialect openai-responses
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers, "wait", "Wait until a call, or every call of a turn, is settled or unknown", examples=EXAMPLES
    )
    parser.add_argument("key", metavar="KEY", help="a call key; or with --scope a turn id")
    parser.add_argument("--scope", type=filled, help="the scope in which the turn was submitted")
    parser.add_argument("--dialect", choices=DIALECTS, help="with --replies: the form of the messages")
    parser.add_argument("--replies", action="store_true", help="print the turn's results as the provider's messages")
    parser.add_argument("--timeout", type=seconds_or_none, metavar="SPAN", help="time to wait (default: no limit)")
    add_json(parser, f"of a call {call.SHAPE}; of a turn {TURN_SHAPE}")


def run(args: argparse.Namespace) -> int:
    if args.replies and not (args.scope and args.dialect):
        raise Usage("--replies needs --scope and --dialect")
    return _turn(args) if args.scope else _call(args)


def _turn(args: argparse.Namespace) -> int:
    with ExitStack() as stack:
        connection = stack.enter_context(open_store(args))
        client = stack.enter_context(Client(connection, scope=args.scope))
        try:
            batch = client.batch(args.key)
        except StoreMisuse as error:
            raise NotFound(str(error)) from error
        wait_for(batch, args.timeout, scope=args.scope, connection=connection)
    show(args, batch)
    return outcome_view.exit_code(batch.outcomes, waited=True)


def _call(args: argparse.Namespace) -> int:
    with open_store(args) as connection:
        found = get_record(connection, args.key)
        if found.state is State.QUEUED:
            say_if_no_worker(connection)
        found = until_rest(connection, found, args.timeout)
    if is_pending(found):
        render.say(f"call {found.key} is still {found.state}")
    if args.json:
        render.show_json(as_json(found))
    else:
        call.show(found)
    return ExitCode.DONE if found.state is State.SUCCEEDED else ExitCode.ENDED_BADLY


def until_rest(connection: Connection, found: Record, timeout: float | None) -> Record:
    """The call once it is settled or unknown, or after the timeout."""
    until = None if timeout is None else time.monotonic() + timeout
    wakeups = Wakeups(connection)
    try:
        with wakeups.watch(connection.space.wake_channel(found.fields.turn_key)) as bell:
            while is_pending(found):
                rang = bell.wait(None if until is None else max(0.0, until - time.monotonic()))
                bell.clear()
                found = get_record(connection, found.key)
                if not rang:
                    break
    finally:
        wakeups.close()
    return found


def is_pending(found: Record) -> bool:
    """Whether the call still waits or runs, so that an outcome will come by itself."""
    return found.state in (State.HELD, State.QUEUED, State.RUNNING)
