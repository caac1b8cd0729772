"""Finding the server: Sentinels that name the primary, TLS, and URLs that say neither."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.redis_server import RealServer
from tests.support.scene import spec
from tests.support.sentinel import Failover
from tests.support.tls import TlsDoor
from toolonce.store.addresses import read_sentinel_url
from toolonce.store.async_connection import AsyncConnection
from toolonce.store.connection import Connection, Patience
from toolonce.store.errors import StoreUnavailable
from toolonce.store.specs import publish, published


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
