"""`toolonce up`: runs server, consumer and worker in one terminal, for development."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING

from ....store.connections.connection import without_password
from ....store.connections.project import find_project, user_folder
from ....stream.inbox.consumer import Consumer
from ....worker.tools.loading import load_registry
from ...options.parser import command
from ...options.settings import (
    LONG_PATIENCE,
    NAMESPACE,
    REDIS,
    StoreSettings,
    add_queue_limits,
    open_store,
    queue_limits,
    require_durable,
)
from ...views import logs, render
from .consume import consume, consumer_name
from .work import add_worker_options, work

if TYPE_CHECKING:
    from ....store.connections.connection import Connection
    from ....stream.harness.queue_limits import QueueLimits
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce up --tools tools:tools
toolonce up                          without a worker: look at calls, pause or settle them before any runs
toolonce up --tools app.tools:tools --redis redis://localhost:6379/0
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers, "up", "Run server, consumer and worker in one terminal, for development", examples=EXAMPLES
    )
    add_worker_options(parser, has_to_have_tools=False)
    add_queue_limits(parser)


def run(args: argparse.Namespace) -> int:
    logs.set_up(args)
    registry = load_registry(args.tools) if args.tools is not None else None
    with open_store(args, patience=LONG_PATIENCE, create=True) as connection:
        require_durable(args, connection)  # before the consumer admits anything
        render.say(_where(args, connection))
        if registry is None:
            render.say("no --tools, so no worker runs and calls wait; Ctrl-C ends the store")
            name = consumer_name()
            return consume(Consumer(connection, name=name, **queue_limits(args)), name, connection.space.name)
        with _consumer(connection, queue_limits(args)):
            return work(args, connection, registry)


def _where(args: argparse.Namespace, connection: Connection) -> str:
    """Where the store is, and what programs in other terminals need to find it."""
    place = f"the store: {connection.place}"
    if StoreSettings.of(args).url is None:
        project = find_project()
        below = "in folders without a project" if project.folder == user_folder() else f"below {project.folder.parent}"
        place += f"; harnesses and commands {below} find it by themselves"
    given = {REDIS: without_password(args.redis) if args.redis else None, NAMESPACE: args.namespace}
    needed = " ".join(f"{name}={quote(value)}" for name, value in given.items() if value)
    return f"{place}; in other terminals: export {needed}" if needed else place


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
