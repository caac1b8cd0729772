"""`toolonce submit`: submits the calls of a provider's response or of a list, and prints their outcomes."""

from __future__ import annotations

import argparse
from contextlib import ExitStack, suppress
from shlex import quote
from typing import TYPE_CHECKING

from redis.exceptions import RedisError

from ....store.model.errors import StoreError, TurnIdMissing
from ....store.model.states import State
from ....store.operations.operators import Question
from ....stream.harness.batch import Batch
from ....stream.harness.client import Client
from ....worker.runtime.worker_status import read_workers
from ...errors import Usage
from ...options.durations import seconds_or_none
from ...options.inputs import add_response_options, calls_of, read_bytes, turn_of
from ...options.parser import add_json, command, filled
from ...options.settings import add_queue_limits, open_store, queue_limits, require_durable
from ...views import outcome_view, render
from ...views.render import SHOWN_DIGITS

if TYPE_CHECKING:
    from ....store.connections.connection import Connection
    from ....store.model.outcomes import Outcome
    from ....stream.turns.turn import TurnResult
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce submit --scope tenant-1/chat-42 < turn.sse
toolonce submit --scope tenant-1/chat-42 --dialect anthropic --replies turn.sse
toolonce submit --scope tenant-1/chat-42 --turn-id step-7 --calls calls.json --wait 5m
echo '[{"name": "add", "arguments": {"a": 1, "b": 2}}]' | toolonce submit --scope s --turn-id 1 --calls -
"""

TURN_SHAPE = (
    "{turn_id, outcomes: [{call, idempotency_key, turn, position, id, reply_id, name, state, replayed, attempt, ...}]}"
)


def add_parser(subparsers: Subparsers) -> None:
    parser = command(subparsers, "submit", "Run the calls of one response, each once", examples=EXAMPLES)
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="the response, streamed or whole (default: standard input)"
    )
    parser.add_argument(
        "--scope", type=filled, required=True, help="tenant and conversation in which turn ids are unique"
    )
    add_response_options(parser)
    parser.add_argument("--calls", metavar="FILE", help='instead of a response: [{"name", "arguments", "id"?}, ...]')
    parser.add_argument("--turn-id", metavar="ID", help="your own step id, the same on every repeat")
    parser.add_argument("--ordered", action="store_true", help="run the calls strictly one after the other")
    parser.add_argument(
        "--wait", type=seconds_or_none, default=60.0, metavar="SPAN", help="time to wait (60s); 0: do not wait"
    )
    add_queue_limits(parser)
    parser.add_argument(
        "--replies", action="store_true", help="print the provider's messages: the turn, then its results"
    )
    add_json(parser, TURN_SHAPE)


def run(args: argparse.Namespace) -> int:
    _check(args)
    turn = None if args.calls else turn_of(args, read_bytes(args.file))
    calls = calls_of(read_bytes(args.calls)) if args.calls else []
    if turn is not None:
        turn.require_calls()
    with ExitStack() as stack:
        connection = stack.enter_context(open_store(args))
        require_durable(args, connection)
        client = stack.enter_context(Client(connection, scope=args.scope, **queue_limits(args)))
        if turn is not None:
            batch = _submit(client, turn, args)
        else:
            batch = client.submit_calls(calls, turn_id=args.turn_id, ordered=args.ordered)
        wait_for(batch, args.wait, scope=args.scope, connection=connection)
    show(args, batch)
    return outcome_view.exit_code(batch.outcomes, waited=args.wait > 0)


def _submit(client: Client, turn: TurnResult, args: argparse.Namespace) -> Batch:
    try:
        return client.submit(turn, turn_id=args.turn_id, ordered=args.ordered)
    except TurnIdMissing as error:
        raise Usage(f"{error} (--turn-id ID)") from error


def wait_for(batch: Batch, seconds: float | None, *, scope: str, connection: Connection) -> None:
    """Wait and print progress; after a timeout or Ctrl-C print how to continue."""
    if seconds != 0 and any(outcome.state is State.QUEUED for outcome in batch.outcomes):
        say_if_no_worker(connection)
    try:
        for outcome in batch.events(seconds) if seconds != 0 else ():
            if line := _progress(outcome):
                render.say(line)
    finally:
        _say_what_is_open(batch, scope)


def say_if_no_worker(connection: Connection) -> None:
    """Say that nobody will run calls now, and how to change it. A user who may not see workers is told nothing."""
    with suppress(RedisError, StoreError):
        if all(row.is_silent for row in read_workers(connection)):
            render.say(
                f"no worker runs in {connection.place}, so calls wait; start one in another terminal: "
                "toolonce work --tools MODULE:REGISTRY"
            )


def _say_what_is_open(batch: Batch, scope: str) -> None:
    outcomes = batch.outcomes
    held = [outcome for outcome in outcomes if outcome.state is State.HELD]
    for_a_person = [outcome.key for outcome in held if Question.of(outcome)]
    if for_a_person:
        keys = " ".join(key[:SHOWN_DIGITS] for key in for_a_person)
        render.say(f"{len(for_a_person)} of {len(outcomes)} calls wait for approval: toolonce approve {keys}, or deny")
    if others := sum(outcome.pending for outcome in outcomes) - len(for_a_person):
        render.say(
            f"{others} of {len(outcomes)} calls are not finished and continue; "
            f"wait for them: toolonce wait --scope {quote(scope)} {quote(batch.turn_id)}"
        )


def _progress(outcome: Outcome) -> str:
    progress = outcome.marks.get("progress")
    if not progress:
        return ""
    share = "" if progress["fraction"] is None else f" {progress['fraction']:.0%}"
    return f"call {outcome.key[:SHOWN_DIGITS]} {outcome.tool}:{share} {progress['message'] or ''}".rstrip()


def _check(args: argparse.Namespace) -> None:
    if args.calls and args.file:
        raise Usage("give a response or --calls, not both")
    if args.calls and args.max_tokens:
        raise Usage("--max-tokens is for a response, not for --calls")
    if args.calls and not args.turn_id:
        raise Usage("--calls needs --turn-id: your own step id, the same on every repeat")
    if args.calls and args.replies and not args.dialect:
        raise Usage("--replies with --calls needs --dialect")


def show(args: argparse.Namespace, batch: Batch) -> None:
    """Print the batch as the provider's messages, JSON, or a table."""
    if args.replies:
        echo = batch.history(args.dialect) if batch.turn is not None else []
        render.show_json([*echo, *batch.replies(args.dialect)])
    elif args.json:
        outcomes = [outcome_view.as_json(outcome) for outcome in batch.outcomes]
        render.show_json({"turn_id": batch.turn_id, "outcomes": outcomes})
    else:
        outcome_view.show(batch.outcomes)
        if not batch.outcomes:
            why = batch.turn.diagnostics if batch.turn is not None else ()
            render.say(f"turn {batch.turn_id} has no calls" + (f": {why[0]}" if why else ""))
