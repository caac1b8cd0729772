"""`toolonce up`: runs server, consumer and worker in one terminal, for development."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ....store.connections.connection import without_password
from ....stream.inbox.consumer import Consumer
from ....worker.tools.loading import load_registry
from ...options.parser import command
from ...options.settings import LONG_PATIENCE, REDIS, add_queue_limits, open_store, queue_limits, require_durable
from ...views import logs, render
from .consume import consumer_name
from .work import add_worker_options, work

if TYPE_CHECKING:
    from ....store.connections.connection import Connection
    from ....stream.harness.queue_limits import QueueLimits
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce up --tools app.tools:tools
toolonce up --tools app.tools:tools --redis redis://localhost:6379/0
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers, "up", "Run server, consumer and worker in one terminal, for development", examples=EXAMPLES
    )
    add_worker_options(parser)
    add_queue_limits(parser)


def run(args: argparse.Namespace) -> int:
    logs.set_up(args)
    registry = load_registry(args.tools)
    with open_store(args, patience=LONG_PATIENCE, create=True) as connection:
        require_durable(args, connection)  # before the consumer admits anything
        shown = without_password(connection.url)
        render.say(f"the store is at {shown}; for harnesses in other terminals: export {REDIS}={shown}")
        with _consumer(connection, queue_limits(args)):
            return work(args, connection, registry)


@contextmanager
def _consumer(connection: Connection, limits: QueueLimits) -> Iterator[None]:
    stop = threading.Event()
    consumer = Consumer(connection, name=consumer_name(), **limits)
    thread = threading.Thread(target=consumer.run, args=(stop,), name="inbox")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
