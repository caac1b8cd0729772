"""Finding the server: Sentinels that name the primary, TLS, and URLs that say neither."""

from __future__ import annotations

import asyncio
import traceback
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.servers.redis_server import RealServer
from tests.support.servers.sentinel import Failover, free_port
from tests.support.servers.tls import TlsDoor
from tests.support.store.scene import spec
from toolonce.store.connections.async_connection import AsyncConnection
from toolonce.store.connections.connection import Connection, Patience, without_password
from toolonce.store.connections.urls import read_sentinel_url
from toolonce.store.model.errors import StoreUnavailable
from toolonce.store.operations.tools import publish, published


def test_a_sentinel_url_names_hosts_service_database_and_both_passwords() -> None:
    watched = read_sentinel_url("redis+sentinel://u:p%40ss@a:1,b/calls/3?sentinel_password=s")

    assert watched
    assert watched.service == "calls"
    assert watched.sentinels == (("a", 1), ("b", 26379))
    assert watched.options == {"db": 3, "username": "u", "password": "p@ss"}
    assert watched.sentinel_options == {"password": "s"}


def test_tls_is_asked_of_sentinels_and_server_alike() -> None:
    watched = read_sentinel_url("rediss+sentinel://a/calls?ssl_ca_certs=/ca.pem")

    assert watched
    assert watched.tls
    assert watched.options["ssl_ca_certs"] == "/ca.pem"
    assert watched.sentinel_options == {"ssl": True, "ssl_ca_certs": "/ca.pem"}


@pytest.mark.parametrize(
    "url",
    [
        "redis://h/abc", "redis://h/0/1", "redis://h?foo=1", "redis://h?protocol=3", "redis://h?decode_responses=true",
        "redis://h?retry_on_timeout=true", "redis://h?ssl_cert_reqs=none", "redis+sentinel://h/calls/x",
    ],
)  # fmt: skip
def test_a_url_that_would_lead_elsewhere_or_change_how_replies_are_read_is_refused(url: str) -> None:
    """faults 21: redis-py takes database 0 for `/abc`, and 1 for `/0/1`."""
    with pytest.raises(ValueError, match=r"database|option"):
        Connection(url)
    with pytest.raises(ValueError, match=r"database|option"):
        AsyncConnection(url)


@pytest.mark.parametrize(
    "url",
    [
        "redis://u:12/geheim@h", "redis://u:geheim/x@h", "redis://u:12#geheim@h", "redis://u:12?geheim=1@h",
        "redis://[u:geheim@h", "redis://h?password=geheim&username=u", "redis+sentinel://h/s/0?sentinel_password=geheim",
        "redis+sentinel://u:geheim/x@h:26379/calls", "rediss://h?ssl_password=geheim",
    ],
)  # fmt: skip
def test_no_part_of_a_password_is_shown_wherever_the_url_holds_it(url: str) -> None:
    assert "geheim" not in without_password(url)
    assert "geheim" not in what_is_said_of(url)


def test_a_database_or_a_sentinel_that_is_not_there_is_an_unreachable_store() -> None:
    """faults 23: clients raised redis-py's errors."""
    host = f"127.0.0.1:{free_port()}"
    with RealServer(port=host.rpartition(":")[2], bind="127.0.0.1"):
        for url, words in ((f"redis://{host}/999999", "DATABASE"), (f"redis+sentinel://{host}/calls", "no Sentinel")):
            with closing(Connection(url)) as connection, pytest.raises(StoreUnavailable, match=words):
                connection.command("PING")
            with pytest.raises(StoreUnavailable, match=words):
                asyncio.run(asked(url))


async def asked(url: str) -> None:
    connection = AsyncConnection(url)
    try:
        await connection.command("PING")
    finally:
        await connection.close()


def what_is_said_of(url: str) -> str:
    """The name of the store, or why the URL cannot be read."""
    try:
        return Connection(url).place
    except ValueError as error:
        return "".join(traceback.format_exception(error)).partition("ValueError")[2]


@pytest.mark.parametrize("url", ["redis://a/0", "rediss://a", "unix:///a"])
def test_other_urls_are_none_of_it(url: str) -> None:
    assert read_sentinel_url(url) is None


@pytest.mark.parametrize("url", ["redis+sentinel://a", "redis+sentinel:///calls", "redis+sentinel://a/calls?x=1"])
def test_a_sentinel_url_that_lacks_something_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="Sentinel URL"):
        read_sentinel_url(url)


def test_a_connection_follows_the_primary_through_a_failover(namespace: str) -> None:
    with Failover() as failover:
        connection = Connection(failover.url, namespace=namespace, patience=Patience(reply=2, total=20))
        connection.run(publish(connection.space, [spec("before")]))
        failover.primary.kill9()

        connection.run(publish(connection.space, [spec("after")]))

        assert set(connection.run(published(connection.space)).tools) >= {"after"}
        with failover.replica.client() as client:
            assert client.info("replication")["role"] == "master"
        connection.close()


def test_an_asynchronous_connection_finds_the_primary_again_too(namespace: str) -> None:
    async def publish_through(failover: Failover) -> set[str]:
        connection = AsyncConnection(failover.url, namespace=namespace, patience=Patience(reply=2, total=20))
        await connection.run(publish(connection.space, [spec("before")]))
        failover.primary.kill9()
        await connection.run(publish(connection.space, [spec("after")]))
        tools = set((await connection.run(published(connection.space))).tools)
        await connection.close()
        return tools

    with Failover() as failover:
        assert "after" in asyncio.run(publish_through(failover))


def test_no_sentinel_at_all_is_an_unreachable_store() -> None:
    connection = Connection("redis+sentinel://127.0.0.1:1/calls", patience=Patience(reply=0.5, total=0.5))

    with pytest.raises(StoreUnavailable):
        connection.ping()
    connection.close()


def test_a_tls_url_trusts_the_authority_it_names_and_no_other(redis_server: RealServer, tmp_path: Path) -> None:
    with TlsDoor(redis_server.socket, tmp_path) as door:
        url = f"rediss://127.0.0.1:{door.port}/0"
        trusting = Connection(f"{url}?ssl_ca_certs={door.authority}")
        doubting = Connection(url, patience=Patience(reply=1, total=0))
        trusting.ping()
        with pytest.raises(StoreUnavailable):
            doubting.ping()
        trusting.close()
        doubting.close()
