"""The faulty line itself: what it loses is lost on the right side of the server."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.servers.proxy import FaultProxy
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until


@pytest.fixture
def proxy(redis_server: RealServer) -> Iterator[FaultProxy]:
    with FaultProxy(redis_server.socket) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(proxy.url, decode_responses=True, retry=Retry(NoBackoff(), 0)) as client:
        yield client


def test_what_is_not_lost_comes_through(client: redis.Redis, namespace: str) -> None:
    value = "x" * 1_000_000
    client.set(namespace, value)

    assert client.get(namespace) == value


def test_a_dropped_reply_was_executed(
    proxy: FaultProxy, client: redis.Redis, redis_server: RealServer, namespace: str
) -> None:
    proxy.drop_reply_to(b"INCR")
    with pytest.raises(redis.ConnectionError):
        client.incr(namespace)

    assert not proxy.armed
    assert redis_server.client().get(namespace) == "1"
    assert client.incr(namespace) == 2


def test_a_dropped_request_was_not_executed(
    proxy: FaultProxy, client: redis.Redis, redis_server: RealServer, namespace: str
) -> None:
    proxy.drop_request(b"INCR")
    with pytest.raises(redis.ConnectionError):
        client.incr(namespace)

    assert redis_server.client().get(namespace) is None


def test_a_fault_hits_only_the_request_it_was_armed_for(proxy: FaultProxy, client: redis.Redis, namespace: str) -> None:
    proxy.drop_reply_to(b"DEL")
    client.set(namespace, "value")

    assert proxy.armed
    assert client.get(namespace) == "value"


def test_a_cut_line_is_closed_and_a_new_one_is_served(proxy: FaultProxy, client: redis.Redis) -> None:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(proxy.url.removeprefix("unix://"))
        line.sendall(b"PING\r\n")
        assert line.recv(100) == b"+PONG\r\n"
        proxy.cut()
        assert line.recv(100) == b""

    assert client.ping()


def test_a_stalled_line_stays_open_and_silent(proxy: FaultProxy) -> None:
    with redis.Redis.from_url(proxy.url, socket_timeout=0.1, retry=Retry(NoBackoff(), 0)) as client:
        client.ping()
        proxy.stall()
        with pytest.raises(redis.TimeoutError):
            client.ping()
        proxy.resume()

        assert client.ping()


def test_a_line_to_a_dead_server_is_closed() -> None:
    with (
        RealServer() as server,
        FaultProxy(server.socket) as proxy,
        redis.Redis.from_url(proxy.url, retry=Retry(NoBackoff(), 0)) as client,
    ):
        client.ping()
        server.kill9()
        with pytest.raises(redis.ConnectionError):
            client.ping()
        server.start()

        assert client.ping()


def test_round_trips_are_counted_and_a_pipeline_is_one(proxy: FaultProxy, client: redis.Redis, namespace: str) -> None:
    client.ping()
    before = proxy.round_trips
    client.set(namespace, 1)
    with client.pipeline(transaction=False) as pipeline:
        for _ in range(100):
            pipeline.incr(namespace)
        pipeline.execute()

    assert wait_until(lambda: proxy.round_trips - before) == 2
