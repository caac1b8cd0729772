"""A real server for tests: private, on a unix socket, durable by default, cheap to kill and to start again."""

from __future__ import annotations

import itertools
import shutil
import signal
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.wait import wait_until
from toolonce.ops.server.server_binary import choose_binary


@cache
def server_binary() -> Path:
    return choose_binary().path


class RealServer:
    """One server with its own folder; usable as a context manager. Not started by the constructor.

    Options are names and values of the server's configuration, with underscores for dashes:
    `RealServer(appendfsync="everysec", maxmemory="20mb", maxmemory_policy="allkeys-lru")`.
    """

    def __init__(self, **options: str) -> None:
        # A socket's path may hold about a hundred bytes only: pytest's own folders are too deep.
        self.folder = Path(tempfile.mkdtemp(prefix="toolonce-test-"))
        self.socket = self.folder / "s"
        self._options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "dir": str(self.folder),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always",
            "maxmemory_policy": "noeviction",
            "hash_max_listpack_value": "256",
        } | options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def client(self) -> redis.Redis:
        """A new client that re-sends nothing by itself."""
        return redis.Redis.from_url(self.url, decode_responses=True, retry=Retry(NoBackoff(), 0))

    def command(self) -> list[str]:
        """What starts it."""
        options = ((f"--{name.replace('_', '-')}", value) for name, value in self._options.items())
        return [str(server_binary()), *itertools.chain.from_iterable(options)]

    def start(self) -> Self:
        """Start it, or start it again with its data; returns once it answers."""
        self.socket.unlink(missing_ok=True)
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self._answers, description=f"the test server answers; its log: {self.log[-500:]}")
        return self

    def kill9(self) -> None:
        """Kill it as a crash does. Its data stays."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Kill it and start it again with its data."""
        self.kill9()
        self.start()

    def pause(self) -> None:
        """Let it hang: connections stay open and nothing answers."""
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._running().send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """End it, if it runs, and delete its folder."""
        if self._process:
            self._end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process, "the server is not running"
        return self._process

    def _end(self, how: signal.Signals) -> None:
        process = self._running()
        process.send_signal(how)
        process.wait(timeout=10)
        self._process = None

    def _answers(self) -> bool:
        assert self._running().poll() is None, f"the test server ended: {self.log[-500:]}"
        if not self.socket.exists():
            return False
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.ConnectionError:  # not listening yet, or still loading its data
            return False
