"""A primary, a replica and a Sentinel on free ports: enough for a real failover."""

from __future__ import annotations

import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

import redis

from tests.support.servers.redis_server import RealServer, server_binary
from tests.support.wait import wait_until

SERVICE = "calls"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Failover:
    """Use as a context manager; ``url`` names the Sentinel."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._sentinel_port = free_port()

    @property
    def url(self) -> str:
        return f"redis+sentinel://127.0.0.1:{self._sentinel_port}/{SERVICE}/0"

    def __enter__(self) -> Self:
        with self._stack as stack:
            self.primary, self.replica = (stack.enter_context(self._server()) for _ in range(2))
            primary_port = self._port(self.primary)
            with self.replica.client() as client:
                client.execute_command("REPLICAOF", "127.0.0.1", str(primary_port))
                wait_until(lambda: client.info("replication")["master_link_status"] == "up")
            self._start_sentinel(stack, primary_port)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def _server(self) -> RealServer:
        return RealServer(port=str(free_port()), bind="127.0.0.1", repl_diskless_sync_delay="0")

    def _port(self, server: RealServer) -> int:
        with server.client() as client:
            return int(client.config_get("port")["port"])

    def _start_sentinel(self, stack: ExitStack, primary_port: int) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolonce-sentinel-")))
        config = folder / "sentinel.conf"
        config.write_text(
            f"port {self._sentinel_port}\nbind 127.0.0.1\ndir {folder}\n"
            f"sentinel monitor {SERVICE} 127.0.0.1 {primary_port} 1\n"
            f"sentinel down-after-milliseconds {SERVICE} 300\nsentinel failover-timeout {SERVICE} 2000\n"
        )
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [server_binary(), config, "--sentinel"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        stack.callback(process.wait)
        stack.callback(process.kill)
        wait_until(self._knows_the_replica, description="the Sentinel has seen the replica")

    def _knows_the_replica(self) -> bool:
        try:
            with redis.Redis(port=self._sentinel_port, decode_responses=True) as client:
                return bool(client.execute_command("SENTINEL", "REPLICAS", SERVICE))
        except redis.RedisError:
            return False


@contextmanager
def primary_and_replica() -> Iterator[tuple[RealServer, RealServer]]:
    """A primary and a replica that follows it."""
    port = free_port()
    with RealServer(port=str(port), bind="127.0.0.1", repl_diskless_sync_delay="0") as primary, RealServer() as replica:
        with replica.client() as client:
            client.execute_command("REPLICAOF", "127.0.0.1", str(port))
            wait_until(lambda: client.info("replication")["master_link_status"] == "up")
        yield primary, replica
