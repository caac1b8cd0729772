"""From a URL to a pool of connections: one server, or the primary that Sentinels name.

redis://host:port/db, rediss:// (TLS), unix://path?db=, as redis-py reads them; and for Sentinel

    redis+sentinel://user:password@host:26379,host:26379/service/db?sentinel_password=...
    rediss+sentinel://...                                           TLS to the Sentinels and to the server

Of redis-py's options a URL may name those of OPTIONS, and no others: how replies are read and what is sent again is
decided here, and an option or a database that redis-py would pass over must not lead to another store.

A connection of a Sentinel pool asks for the primary whenever it connects, and counts a demoted primary's refusal as a
lost connection, so that our re-sending finds the new one. redis-py's own class (8.1) asks only in `connect`, and not
when a lost connection is opened again by the next command: it would go to localhost.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from inspect import signature
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import redis
import redis.asyncio as aioredis
from redis.asyncio import sentinel as aio
from redis.exceptions import RedisError
from redis.sentinel import (
    Sentinel,
    SentinelConnectionPool,
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)

SENTINEL_PORT = 26379
_QUOTING = "in a password write '/' as %2F, '#' as %23, '?' as %3F and '@' as %40"
_SCHEMES = {"redis+sentinel": False, "rediss+sentinel": True}
_TLS_OPTIONS = {
    "ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_password", "ssl_cert_reqs", "ssl_check_hostname",
    "ssl_ciphers", "ssl_min_version",
}  # fmt: skip
OPTIONS = {"db", "username", "password", "client_name", "socket_timeout", "socket_connect_timeout", "socket_keepalive"}
# CLIENT SETINFO is left out: Redis 7.0 has no such command, so its access lists can neither name nor allow it, and each
# connection would leave a denial in ACL LOG. redis-py 8 renamed the option.
_UNNAMED: dict[str, Any] = dict.fromkeys(
    ["driver_info"]
    if "driver_info" in signature(redis.connection.AbstractConnection.__init__).parameters
    else ["lib_name", "lib_version"]
)
_TEXT_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "client_name")


@dataclass(frozen=True, slots=True)
class SentinelUrl:
    """A primary that is found through Sentinels."""

    service: str
    sentinels: tuple[tuple[str, int], ...]
    tls: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    sentinel_options: dict[str, Any] = field(default_factory=dict)


def split(url: str) -> SplitResult:
    """The parts of a URL.

    Raises:
        ValueError: it cannot be read; the message never holds a piece of it, since that may be of a password.
    """
    try:
        parts = urlsplit(url)
        if parts.scheme not in _SCHEMES:
            parts.port  # noqa: B018  # looks at it
    except ValueError:
        raise ValueError(f"host and port cannot be told apart; {_QUOTING}") from None
    loose = parts.path if "@" in parts.netloc else parts.path + parts.query
    if parts.fragment or (parts.scheme != "unix" and "@" in loose):
        raise ValueError(f"host and port cannot be told apart; {_QUOTING}")
    return parts


def require_plain(url: str) -> None:
    """Refuse what redis-py would take for something else, or pass over.

    Raises:
        ValueError: a database that is not a number, or an option that is not ours to give.
    """
    parts = split(url)
    known = OPTIONS | _TLS_OPTIONS if parts.scheme == "rediss" else OPTIONS
    for name, _ in parse_qsl(parts.query):
        if name in _TLS_OPTIONS - known:
            raise ValueError(f"the option {name!r} is for rediss://")
        if name not in known:
            raise ValueError(f"unknown option {name!r}; there are {', '.join(sorted(known))}")
    database = parts.path.strip("/")
    if parts.scheme != "unix" and database and not _is_number(database):
        raise ValueError(f"the database {database!r} is not a number")


def read_sentinel_url(url: str) -> SentinelUrl | None:
    """The parts of a Sentinel URL; None for any other.

    Raises:
        ValueError: it is one, and something of it is missing or unknown.
    """
    parts = split(url)
    if parts.scheme not in _SCHEMES:
        return None
    credentials, _, hosts = parts.netloc.rpartition("@")
    service, _, db = parts.path.strip("/").partition("/")
    if not hosts or not service:
        raise ValueError("a Sentinel URL needs hosts and a service: redis+sentinel://host:26379,host:26379/service/0")
    if db and not _is_number(db):
        raise ValueError(f"the database {db!r} is not a number")
    tls = _SCHEMES[parts.scheme]
    options: dict[str, Any] = {"db": int(db or 0), **_credentials(credentials)}
    sentinel_options: dict[str, Any] = {"ssl": True} if tls else {}
    for name, value in parse_qsl(parts.query):
        if name in _TEXT_OPTIONS:
            options[name] = value
            if name.startswith("ssl_"):
                sentinel_options[name] = value
        elif name in ("sentinel_username", "sentinel_password"):
            sentinel_options[name.removeprefix("sentinel_")] = value
        else:
            raise ValueError(f"unknown option {name!r} in a Sentinel URL")
    return SentinelUrl(service, tuple(map(_address, hosts.split(","))), tls, options, sentinel_options)


class _PrimaryLookup:
    """Asks who the primary is before every connect."""

    def connect_check_health(self, check_health: bool = True, retry_socket_connect: bool = True) -> Any:
        if not self._sock:  # type: ignore[attr-defined]
            self.host, self.port = self.connection_pool.get_master_address()  # type: ignore[attr-defined]
        return super().connect_check_health(check_health, retry_socket_connect)  # type: ignore[misc]


class _AsyncAsking:
    """The same for asyncio."""

    async def connect_check_health(self, check_health: bool = True, retry_socket_connect: bool = True) -> Any:
        if not self.is_connected:  # type: ignore[attr-defined]
            self.host, self.port = await self.connection_pool.get_master_address()  # type: ignore[attr-defined]
        return await super().connect_check_health(check_health, retry_socket_connect)  # type: ignore[misc]


class _Plain(_PrimaryLookup, SentinelManagedConnection): ...


class _Tls(_PrimaryLookup, SentinelManagedSSLConnection): ...


class _AsyncPlain(_AsyncAsking, aio.SentinelManagedConnection): ...


class _AsyncTls(_AsyncAsking, aio.SentinelManagedSSLConnection): ...


class _Pool(SentinelConnectionPool):
    """Closes the lines to the Sentinels with its own."""

    def disconnect(self, inuse_connections: bool = True) -> None:
        super().disconnect(inuse_connections)
        for client in self.sentinel_manager.sentinels:
            client.close()


class _AsyncPool(aio.SentinelConnectionPool):
    """The same for asyncio."""

    async def disconnect(self, inuse_connections: bool = True) -> None:
        await super().disconnect(inuse_connections)
        for client in self.sentinel_manager.sentinels:
            await client.aclose()


def open_pool(url: str, **options: Any) -> redis.ConnectionPool:
    """A pool for this URL; nothing is connected yet.

    Raises:
        ValueError: the URL cannot be read.
    """
    watched = read_sentinel_url(url)
    options = {**_UNNAMED, **options}
    if watched is None:
        require_plain(url)
        return redis.ConnectionPool.from_url(url, **options)
    manager = Sentinel(watched.sentinels, sentinel_kwargs=_patient(watched, options))  # type: ignore[no-untyped-call]
    kwargs = {**options, **watched.options, "connection_class": _Tls if watched.tls else _Plain}
    return _Pool(watched.service, manager, **kwargs)  # type: ignore[no-untyped-call]


def listed_replicas(pool: redis.ConnectionPool) -> int:
    """How many replicas the Sentinels of this pool know, those included that they call down: the largest answer of one
    Sentinel; 0 for any other pool, and where none answers. Counted by the identity that a server gives itself: one that
    stands there under two addresses is one replica."""
    if not isinstance(pool, _Pool):
        return 0
    found = 0
    for client in pool.sentinel_manager.sentinels:
        with suppress(RedisError, OSError):
            listed = client.sentinel_slaves(pool.service_name)
            found = max(found, len({entry["runid"] for entry in listed if entry.get("runid")}))
    return found


def open_async_pool(url: str, **options: Any) -> aioredis.ConnectionPool:
    """The same for asyncio."""
    watched = read_sentinel_url(url)
    options = {**_UNNAMED, **options}
    if watched is None:
        require_plain(url)
        return aioredis.ConnectionPool.from_url(url, **options)
    manager = aio.Sentinel(watched.sentinels, sentinel_kwargs=_patient(watched, options))  # type: ignore[no-untyped-call]
    kwargs = {**options, **watched.options, "connection_class": _AsyncTls if watched.tls else _AsyncPlain}
    return _AsyncPool(watched.service, manager, **kwargs)  # type: ignore[no-untyped-call]


def _patient(watched: SentinelUrl, options: dict[str, Any]) -> dict[str, Any]:
    """A Sentinel that hangs must not hang us: the next one is asked after the same time as a server."""
    waits: dict[str, Any] = {
        name: options[name] for name in ("socket_timeout", "socket_connect_timeout", "retry") if name in options
    }
    return {**waits, **watched.sentinel_options}


def _credentials(text: str) -> dict[str, str]:
    if not text:
        return {}
    user, _, password = text.partition(":")
    found = {"username": unquote(user), "password": unquote(password)}
    return {name: value for name, value in found.items() if value}


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if colon and not _is_number(port):
        raise ValueError(f"a Sentinel URL has a port that is not a number; {_QUOTING}")
    return (host, int(port)) if colon else (text, SENTINEL_PORT)
