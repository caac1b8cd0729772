"""Which Redis, which namespace, how sure: flags, then the environment, then this project's own server.

Decides the order of the three and opens the connection for a command. Knows no command.
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
# A person waits: one answer may take a while on a busy server, but a dead one should be said so soon.
PATIENCE = Patience(reply=5.0, total=5.0)
LONG_PATIENCE = Patience(reply=10.0, total=60.0)
"""What runs for long outlives a restart of its server; a person's command does not wait for one."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where the store is; `url` None means the embedded server."""

    url: str | None
    namespace: str
    durability: Durability

    @classmethod
    def of(cls, args: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> StoreSettings:
        """Read flags and environment.

        Raises:
            Usage: the environment asks for a durability that there is not.
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
    """The options of every command that talks to the store."""
    group = parser.add_argument_group("where the store is")
    group.add_argument(
        "--redis",
        metavar="URL",
        help=f"redis://, rediss://, unix:// or redis+sentinel://; else {REDIS}, else this project's own server",
    )
    group.add_argument("--namespace", metavar="NAME", help=f"the installation; else {NAMESPACE}, else toolonce")
    group.add_argument(
        "--durability",
        choices=[level.value for level in Durability],
        help="strict: the server must fsync before it answers (default); declared: you vouch; volatile: it may forget",
    )


def add_queue_limits(parser: argparse.ArgumentParser) -> None:
    """The options of every command that admits calls."""
    parser.add_argument(
        "--queue-limit", type=int, metavar="N",
        help="admit nothing new while a queue holds N calls; 0: no limit; else TOOLONCE_QUEUE_LIMIT, else 100000",
    )  # fmt: skip
    parser.add_argument(
        "--tenant-queue-limit", type=int, metavar="N",
        help="nothing new of a tenant with N queued calls; 0: no limit; else TOOLONCE_TENANT_QUEUE_LIMIT, else 20000",
    )  # fmt: skip


def queue_limits(args: argparse.Namespace) -> QueueLimits:
    """What the options and the environment say.

    Raises:
        Usage: a limit is no number of calls.
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
    """The connection that a command works on; this project's own server is joined or started, and left at the end.

    Args:
        create: make this project a store of its own where it has none; for what begins things.

    Raises:
        StoreUnavailable, EmbeddedServerError: there is no server to talk to.
        StoreUnsafe: the server is a node of a Redis Cluster, unless `any_kind` of server will do.
        Usage: the URL or the namespace cannot be read.
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
    """Refuse a server that may forget, unless the operator said otherwise; say aloud what was waived.

    Raises:
        StoreUnsafe: with the cause and the way out.
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
        raise type(error)(f"{error}; or name a server with --redis URL or {REDIS}") from error
    with server, kept_up(server):
        yield server.url


def _connection(url: str, namespace: str, patience: Patience) -> Connection:
    try:
        connection = Connection(url, namespace=namespace, patience=patience)
        connection.dedicated().close()  # connects nothing; an option of the URL that there is not shows here
        return connection
    except (ValueError, TypeError, RedisError) as error:
        about_url = "namespace" not in str(error)
        raise Usage(f"--redis {without_password(url)!r}: {error}" if about_url else str(error)) from error
