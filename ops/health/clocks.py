"""How far the clocks of replicas and of this host are from the primary's. Asks, and decides nothing.

Leases and deadlines are times of the primary's clock: a failover puts another one in its place.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.connection import SSLConnection
from redis.exceptions import RedisError
from redis.retry import Retry

from ...store.connections.connection import Connection
from ...store.connections.replication import following
from ..options.listing import server_now

HOST = "this host"
PATIENCE_S = 1.0
_OURS = ("username", "password", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs")


def read_clocks(connection: Connection, info: Mapping[str, str]) -> dict[str, int]:
    """Server or host -> ms that its clock is ahead of the primary's; negative, behind. Replicas that cannot be reached
    from here, or refuse our login, are left out.

    Raises:
        StoreUnavailable: the primary does not answer.
    """
    clocks = {HOST: round(_ahead(connection, time.time))}
    for host, port in following(info):
        try:
            with _beside(connection, host, port) as replica:
                replica.ping()  # the first answer may take as long as it takes to connect
                clocks[f"{host}:{port}"] = round(_ahead(connection, lambda replica=replica: _seconds(replica)))
        except (RedisError, OSError):
            continue
    return clocks


def _ahead(connection: Connection, ask: Any) -> float:
    """In ms; the primary is asked before and after."""
    before = server_now(connection)
    there: float = ask() * 1000
    return there - (before + server_now(connection)) / 2


def _seconds(replica: redis.Redis) -> float:
    seconds, micros = replica.time()
    return int(seconds) + int(micros) / 1_000_000


def _beside(connection: Connection, host: str, port: int) -> redis.Redis:
    """A client for another server of the same installation."""
    given = connection.pool.connection_kwargs
    login = {name: given[name] for name in _OURS if given.get(name) is not None}
    tls = issubclass(connection.pool.connection_class, SSLConnection)
    return redis.Redis(
        host=host, port=port, ssl=tls, socket_timeout=PATIENCE_S, socket_connect_timeout=PATIENCE_S,
        retry=Retry(NoBackoff(), 0), **login,
    )  # fmt: skip
