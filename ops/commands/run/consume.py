"""`toolonce consume`: queues the calls that harnesses add to inboxes."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import threading
from types import FrameType
from typing import TYPE_CHECKING

from ....stream.inbox.consumer import Consumer
from ...options.parser import command
from ...options.settings import LONG_PATIENCE, add_queue_limits, open_store, queue_limits, require_durable
from ...views import logs, render

if TYPE_CHECKING:
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce consume
toolonce consume --tenant acme --tenant umbrella     only the inboxes of these tenants
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(subparsers, "consume", "Read calls from inboxes and queue them", examples=EXAMPLES)
    parser.add_argument(
        "--tenant", action="append", default=[], metavar="T", help="only this tenant's inbox; may be repeated"
    )
    parser.add_argument("--name", default=consumer_name(), help="this consumer's name in the group (host and process)")
    add_queue_limits(parser)
    logs.add_options(parser)


def run(args: argparse.Namespace) -> int:
    logs.set_up(args)
    with open_store(args, patience=LONG_PATIENCE) as connection:
        require_durable(args, connection)
        consumer = Consumer(connection, name=args.name, tenants=tuple(args.tenant), **queue_limits(args))
        return consume(consumer, args.name, connection.space.name)


def consume(consumer: Consumer, name: str, namespace: str) -> int:
    """Read the inboxes in this process until it is told to end."""
    stop = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    render.say(f"consumer {name} reads the inboxes of {namespace}")
    consumer.run(stop)
    render.say(f"consumer {name} ends: {consumer.admitted} admitted, {consumer.quarantined} quarantined")
    return 0


def consumer_name() -> str:
    """A name that is unique among running consumers: host and process."""
    return f"{socket.gethostname()}-{os.getpid()}"
