"""A faulty line to Redis: a proxy that forwards, and loses, delays or cuts what a test asks for.

A client connects to `proxy.url` instead of the server. Faults are armed for requests that hold some bytes, so that a
test hits one command of one exchange and nothing else.
"""

from __future__ import annotations

import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

_CHUNK = 65536


class FaultProxy:
    """A proxy on a unix socket before the server on another; usable as a context manager.

    `round_trips` counts how often a connection asked after it had been answered: pipelined commands count once.
    """

    def __init__(self, server_socket: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="toolonce-proxy-"))
        self._upstream = server_socket
        self._lines: set[_Line] = set()
        self._lock = threading.Lock()
        self._flowing = threading.Event()
        self._flowing.set()
        self._faults: list[_Fault] = []
        self.round_trips = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._folder / "s"))
        self._listener.listen(128)
        self._closing = False
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    @property
    def url(self) -> str:
        return f"unix://{self._folder / 's'}"

    def drop_reply_to(self, part: bytes, times: int = 1) -> None:
        """Let the server execute the next requests holding `part`, then cut the line before their reply gets out."""
        self._arm(_Fault(part, times, after_execution=True))

    def drop_request(self, part: bytes, times: int = 1) -> None:
        """Cut the line when the next requests holding `part` come, before the server sees them."""
        self._arm(_Fault(part, times, after_execution=False))

    @property
    def armed(self) -> bool:
        """Whether a fault is still waiting for its request."""
        with self._lock:
            return any(fault.times for fault in self._faults)

    def cut(self) -> None:
        """Close every connection there is; new ones are served."""
        with self._lock:
            lines = list(self._lines)
        for line in lines:
            line.close()

    def stall(self) -> None:
        """Keep all connections open and let nothing through, either way."""
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    def close(self) -> None:
        self._closing = True
        self._flowing.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join(timeout=10)
        self._listener.close()
        self.cut()
        with self._lock:
            lines = list(self._lines)
        for line in lines:
            line.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def fault_for(self, request: bytes) -> _Fault | None:
        """Use up and return the fault armed for this request; called by the lines."""
        with self._lock:
            for fault in self._faults:
                if fault.times and fault.part in request:
                    fault.times -= 1
                    return fault
        return None

    def count_round_trip(self) -> None:
        with self._lock:
            self.round_trips += 1

    def wait_until_flowing(self) -> None:
        self._flowing.wait()

    def forget(self, line: _Line) -> None:
        with self._lock:
            self._lines.discard(line)

    def _arm(self, fault: _Fault) -> None:
        with self._lock:
            self._faults.append(fault)

    def _accept(self) -> None:
        while not self._closing:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self._upstream))
            except OSError:  # the server is down: so is the line
                server.close()
                client.close()
                continue
            line = _Line(self, client, server)
            with self._lock:
                self._lines.add(line)
            line.start()


class _Fault:
    def __init__(self, part: bytes, times: int, *, after_execution: bool) -> None:
        self.part = part
        self.times = times
        self.after_execution = after_execution


class _Line(threading.Thread):
    """One client's connection, both ways, in one thread."""

    def __init__(self, proxy: FaultProxy, client: socket.socket, server: socket.socket) -> None:
        super().__init__(daemon=True)
        self._proxy, self._client, self._server = proxy, client, server
        self._awaits_reply = False
        self._request = b""
        self._fault: _Fault | None = None

    def close(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def run(self) -> None:
        try:
            while self._forward():
                pass
        except OSError:
            pass
        finally:
            self.close()
            self._client.close()
            self._server.close()
            self._proxy.forget(self)

    def _forward(self) -> bool:
        ready, _, _ = select.select([self._client, self._server], [], [])
        self._proxy.wait_until_flowing()
        steps: tuple[tuple[socket.socket, Callable[[bytes], bool]], ...] = (
            (self._server, self._pass_reply),
            (self._client, self._pass_request),
        )
        for end, step in steps:
            if end in ready:
                data = end.recv(_CHUNK)
                if not data or not step(data):
                    return False
        return True

    def _pass_request(self, data: bytes) -> bool:
        # What belongs to one request may come in several chunks: it is looked at as a whole.
        self._request = self._request + data if self._awaits_reply else data
        if not self._awaits_reply:
            self._awaits_reply = True
            self._proxy.count_round_trip()
        self._fault = self._fault or self._proxy.fault_for(self._request)
        if self._fault and not self._fault.after_execution:
            return False
        self._server.sendall(data)
        return True

    def _pass_reply(self, data: bytes) -> bool:
        if self._fault:
            return False
        self._awaits_reply = False
        self._client.sendall(data)
        return True
