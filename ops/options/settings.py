"""Decides the Redis server, the namespace and the durability check of a command, and opens the connection.

Flags come first, then the environment, then this project's own server. Must not know any command.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import cast

from redis.exceptions import RedisError

from ...store.connections.connection import Connection, Patience, without_password
from ...store.connections.durability import Durability, refuse_cluster, require
from ...store.connections.project import NAMESPACE_VARIABLE, URL_VARIABLE, chosen_namespace, chosen_url
from ...store.model.errors import StoreMisuse
from ...stream.harness.queue_limits import DEFAULTS, QueueLimits, complete
from ..errors import EmbeddedServerError, NoStoreHere, Usage
from ..server.embedded import project_server
from ..server.server_supervisor import kept_up
from ..views import render

REDIS = URL_VARIABLE
NAMESPACE = NAMESPACE_VARIABLE
DURABILITY = "TOOLONCE_DURABILITY"
# For commands of a person: long enough for a busy server, and short enough to report a dead one soon.
PATIENCE = Patience(reply=5.0, total=5.0)
LONG_PATIENCE = Patience(reply=10.0, total=60.0)
"""For long-running commands, which survive a restart of the server."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """The location of the store; `url` None means the embedded server."""

    url: str | None
    namespace: str
    durability: Durability

    @classmethod
    def of(cls, args: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> StoreSettings:
        """Read flags and environment.

        Raises:
            Usage: the environment holds an invalid durability.
        """
        level = args.durability or environment.get(DURABILITY) or Durability.STRICT
        if level not in set(Durability):
            raise Usage(f"{DURABILITY}={level}: use {', '.join(Durability)}")
        return cls(
            url=chosen_url(args.redis, environment),
            namespace=chosen_namespace(args.namespace, environment),
            durability=Durability(level),
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that uses the store."""
    group = parser.add_argument_group("the store")
    group.add_argument(
        "--redis",
        metavar="URL",
        help=f"redis://, rediss://, unix:// or redis+sentinel://; default: {REDIS}, else this project's own server",
    )
    group.add_argument(
        "--namespace", metavar="NAME", help=f"the namespace in Redis; default: {NAMESPACE}, else toolonce"
    )
    group.add_argument(
        "--durability",
        choices=[level.value for level in Durability],
        help="strict (default): the server must fsync before it answers; declared: not checked, you are sure; "
        "volatile: the server may lose writes",
    )


def add_queue_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that admits calls."""
    parser.add_argument(
        "--queue-limit", type=int, metavar="N",
        help="refuse new calls while a queue holds N; 0: no limit; default: TOOLONCE_QUEUE_LIMIT, else 100000",
    )  # fmt: skip
    parser.add_argument(
        "--tenant-queue-limit", type=int, metavar="N",
        help="refuse calls of a tenant with N queued; 0: no limit; default: TOOLONCE_TENANT_QUEUE_LIMIT, else 20000",
    )  # fmt: skip


def queue_limits(args: argparse.Namespace) -> QueueLimits:
    """The queue limits from the options, the environment and the defaults.

    Raises:
        Usage: a limit is not a number of calls.
    """
    given = {name: value for name in DEFAULTS if (value := getattr(args, name)) is not None}
    try:
        return complete(cast("QueueLimits", given))
    except StoreMisuse as error:
        raise Usage(str(error)) from error


@contextmanager
def open_store(
    args: argparse.Namespace, *, patience: Patience = PATIENCE, any_kind: bool = False, create: bool = False
) -> Iterator[Connection]:
    """The connection of a command. This project's own server is joined, and left at the end.

    Args:
        create: start this project's own server, and create a store where there is none: for `toolonce up`.

    Raises:
        StoreUnavailable, EmbeddedServerError: there is no server.
        StoreUnsafe: the server is a node of a Redis Cluster, unless `any_kind` is True.
        Usage: the URL or the namespace is invalid.
    """
    settings = StoreSettings.of(args)
    with ExitStack() as stack:
        url = settings.url or stack.enter_context(_embedded(create))
        connection = _connection(url, settings.namespace, patience)
        stack.callback(connection.close)
        connection.ping()
        if not any_kind:
            refuse_cluster(connection)
        yield connection


def require_durable(args: argparse.Namespace, connection: Connection) -> None:
    """Refuse a server that may lose writes, unless the operator allows it, which prints a warning.

    Raises:
        StoreUnsafe: the text says why and what to do.
    """
    for warning in require(connection, StoreSettings.of(args).durability):
        render.say(f"toolonce: warning: {warning}")


@contextmanager
def _embedded(create: bool) -> Iterator[str]:
    try:
        server = project_server(create=create)
    except NoStoreHere:
        raise
    except EmbeddedServerError as error:
        raise type(error)(f"{error}; or set a server with --redis URL or {REDIS}") from error
    with server, kept_up(server):
        yield server.url


def _connection(url: str, namespace: str, patience: Patience) -> Connection:
    try:
        connection = Connection(url, namespace=namespace, patience=patience)
        connection.dedicated().close()  # does not connect yet, but refuses unknown options of the URL
        return connection
    except (ValueError, TypeError, RedisError) as error:
        about_url = "namespace" not in str(error)
        raise Usage(f"--redis {without_password(url)!r}: {error}" if about_url else str(error)) from error
