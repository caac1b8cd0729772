"""`toolonce work`: runs a worker process for the tools of a registry."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from ....store.model.states import SETTLED, State
from ....store.operations.recovery import Retention
from ....worker.tools.loading import load_registry
from ...errors import Usage
from ...options.durations import milliseconds, seconds
from ...options.parser import command, filled
from ...options.settings import LONG_PATIENCE, StoreSettings, open_store
from ...views import logs

if TYPE_CHECKING:
    from ....store.connections.connection import Connection
    from ....worker.tools.registry import Registry
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce work --tools app.tools:tools
toolonce work --tools app.tools:tools --concurrency 32 --queue default --queue billing
toolonce work --tools app.tools:tools --burst      run the waiting calls, then end
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(subparsers, "work", "Run waiting calls with the tools of a registry", examples=EXAMPLES)
    add_worker_options(parser)
    parser.add_argument("--burst", action="store_true", help="end when no call waits")


def add_worker_options(parser: argparse.ArgumentParser, *, has_to_have_tools: bool = True) -> None:
    """Add the options of a worker, which `up` has as well."""
    parser.add_argument(
        "--tools", required=has_to_have_tools, metavar="MODULE:REGISTRY", help="module and name of your Registry"
    )
    parser.add_argument("--concurrency", type=int, default=16, metavar="N", help="most calls at a time (16)")
    parser.add_argument(
        "--queue",
        action="append",
        type=filled,
        metavar="Q",
        help="serve this queue; may be repeated (default: the queues of the tools)",
    )
    parser.add_argument(
        "--lease", type=milliseconds, default=30_000, metavar="SPAN", help="length of the lease of a running call (30s)"
    )
    parser.add_argument(
        "--keep", action="append", type=keeping, metavar="[STATE=]SPAN", default=[],
        help="retention of settled calls, or of those in one state (7d); may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--keep-marks", type=milliseconds, default=Retention().tombstone_ms, metavar="SPAN",
        help="time to keep the mark that a call has run (90d)",
    )  # fmt: skip
    parser.add_argument(
        "--replicas", type=replicas, default=0, metavar="all|N",
        help="replicas that must have the claim of a mutating call before it runs; all: as many as there ever were (0)",
    )  # fmt: skip
    parser.add_argument("--name", metavar="NAME", help="name of this worker (default: host, process and a random word)")
    parser.add_argument(
        "--grace", type=seconds, default=25.0, metavar="SPAN", help="time for running calls to end after SIGTERM (25s)"
    )
    logs.add_options(parser)


def keeping(text: str) -> tuple[State | None, int]:
    """`7d`, or `failed=30d`. An argparse type."""
    state, _, span = text.rpartition("=")
    if state and state not in SETTLED:
        raise argparse.ArgumentTypeError(f"{state!r}: use one of {', '.join(sorted(SETTLED))}, or no state")
    return State(state) if state else None, milliseconds(span)


def replicas(text: str) -> int | Literal["all"]:
    """`all`, or a number that is not negative. An argparse type."""
    if text == "all":
        return "all"
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: give a number of replicas, or all")
    return int(text)


def retention(keep: Sequence[tuple[State | None, int]], marks_ms: int) -> Retention:
    """The retention from the options."""
    spans = dict(keep)
    states = {state: span for state, span in spans.items() if state}
    return Retention(spans.get(None, Retention().body_ms), marks_ms, states)


def run(args: argparse.Namespace) -> int:
    logs.set_up(args)
    registry = load_registry(args.tools)
    with open_store(args, patience=LONG_PATIENCE) as connection:
        return work(args, connection, registry, burst=args.burst)


def work(args: argparse.Namespace, connection: Connection, registry: Registry, *, burst: bool = False) -> int:
    """Run a worker in this process until it is told to end."""
    from ....worker.runtime.process import Options, run_worker  # imports RQ, which only a worker needs

    try:
        options = Options(
            queues=tuple(args.queue or ()),
            concurrency=args.concurrency,
            lease_ms=args.lease,
            grace_s=args.grace,
            burst=burst,
            durability=StoreSettings.of(args).durability,
            name=args.name or "",
            retention=retention(args.keep, args.keep_marks),
            replicas=args.replicas,
        )
        return run_worker(connection, registry, options)
    except ValueError as error:
        raise Usage(str(error)) from error
