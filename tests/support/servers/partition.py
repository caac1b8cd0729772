"""A primary with replicas and Sentinels whose network can be divided, and put together again.

The cut-off side: the primary, at will one replica, whoever uses `url_cut_off`. The other side: the other replicas,
three Sentinels, whoever uses `url_majority`. What crosses the border goes through gates.
"""

from __future__ import annotations

import socket
import subprocess
import tempfile
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

import redis

from tests.support.servers.redis_server import RealServer, server_binary
from tests.support.servers.sentinel import SERVICE, free_port
from tests.support.wait import wait_until

SENTINELS, QUORUM = 3, 2
DOWN_AFTER_MS, FAILOVER_MS = 500, 4_000


class Gate:
    """A way to a server that can be cut. Its port stands for the server's on the other side."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        self._target = 0
        self._cut = False
        self._ends: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def lead_to(self, port: int) -> None:
        self._target = port

    def cut(self) -> None:
        """End every connection, and let none through."""
        self._cut = True
        for end in list(self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._ends.clear()

    def heal(self) -> None:
        self._cut = False

    def close(self) -> None:
        self.cut()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self._cut:
                    raise ConnectionRefusedError
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            self._ends |= {near, far}
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while (data := source.recv(65536)) and not self._cut:
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
            self._ends.discard(end)


class Divided:
    """Use as a context manager.

    Args:
        near: replicas on the primary's side of the border; far: on the other side, at least one.
        through: ``direct``, the cut-off side finds its primary by a URL; ``sentinel``, by a Sentinel on its own side,
            which still hears of the promoted replica.
        min_replicas: the primary's ``min-replicas-to-write``.
    """

    def __init__(self, *, near: int = 0, far: int = 1, through: str = "direct", min_replicas: int = 0) -> None:
        self._near, self._far, self._through, self._min = near, far, through, min_replicas
        self._stack = ExitStack()
        self._gates: list[Gate] = []
        self.replicas: list[RealServer] = []

    def __enter__(self) -> Self:
        with self._stack as stack:
            self.primary, port, gate = self._server(stack, gated=True)
            near = [self._server(stack, gated=True) for _ in range(self._near)]
            far = [self._server(stack, gated=False) for _ in range(self._far)]
            for server, _, _ in near:
                self._follow(server, port)
            for server, _, _ in far:
                self._follow(server, gate)
            self.replicas = [server for server, _, _ in (*near, *far)]
            with self.primary.client() as client:
                client.config_set("min-replicas-to-write", self._min)
            ports = [self._sentinel(stack, gate, QUORUM) for _ in range(SENTINELS)]
            wait_until(lambda: all(self._knows(one, SENTINELS - 1) for one in ports), description="Sentinels meet")
            self.url_majority = f"redis+sentinel://{','.join(f'127.0.0.1:{one}' for one in ports)}/{SERVICE}/0"
            self.url_cut_off = f"redis://127.0.0.1:{port}/0"
            if self._through == "sentinel":
                self.url_cut_off = f"redis+sentinel://127.0.0.1:{self._sentinel(stack, port, 1)}/{SERVICE}/0"
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def cut(self) -> None:
        for gate in self._gates:
            gate.cut()

    def heal(self) -> None:
        for gate in self._gates:
            gate.heal()

    def promoted(self) -> RealServer | None:
        """The replica that has become a primary, if one has."""
        return next((server for server in self.replicas if _role(server) == "master"), None)

    def whole(self) -> bool:
        """Whether there is one primary again, and everyone else follows it."""
        servers = (self.primary, *self.replicas)
        following = [server for server in servers if _follows(server)]
        return len(following) == len(servers) - 1

    def _server(self, stack: ExitStack, *, gated: bool) -> tuple[RealServer, int, int]:
        """The server, its port, and its port as those beyond the border see it."""
        port, announced = free_port(), {}
        seen_as = port
        if gated:
            gate = Gate()
            stack.callback(gate.close)
            gate.lead_to(port)
            self._gates.append(gate)
            seen_as = gate.port
            announced = {"replica_announce_ip": "127.0.0.1", "replica_announce_port": str(gate.port)}
        server = RealServer(port=str(port), bind="127.0.0.1", repl_diskless_sync_delay="0", **announced)
        return stack.enter_context(server), port, seen_as

    def _follow(self, server: RealServer, port: int) -> None:
        with server.client() as client:
            client.execute_command("REPLICAOF", "127.0.0.1", str(port))
        wait_until(lambda: _follows(server), description="the replica has caught up")

    def _sentinel(self, stack: ExitStack, primary: int, quorum: int) -> int:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolonce-sentinel-")))
        port, config = free_port(), folder / "sentinel.conf"
        config.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor {SERVICE} 127.0.0.1 {primary} {quorum}\n"
            f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}\n"
            f"sentinel failover-timeout {SERVICE} {FAILOVER_MS}\n"
        )
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [server_binary(), config, "--sentinel"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        stack.callback(process.wait)
        stack.callback(process.kill)
        wait_until(lambda: self._knows(port, 0), description="the Sentinel knows the replicas")
        return port

    def _knows(self, port: int, others: int) -> bool:
        try:
            with redis.Redis(port=port, decode_responses=True) as client:
                listed = client.execute_command("SENTINEL", "REPLICAS", SERVICE)
                sentinels = client.execute_command("SENTINEL", "SENTINELS", SERVICE)
                return len(listed) >= len(self.replicas) and len(sentinels) >= others
        except redis.RedisError:
            return False


def _role(server: RealServer) -> str:
    try:
        with server.client() as client:
            return str(client.info("replication")["role"])
    except redis.RedisError:
        return ""


def _follows(server: RealServer) -> bool:
    try:
        with server.client() as client:
            info = client.info("replication")
            return bool(info["role"] == "slave" and info["master_link_status"] == "up")
    except redis.RedisError:
        return False
