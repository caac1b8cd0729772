"""What each measurement stands on: a fresh server that fsyncs, a fresh file of marks, worker processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import marks  # noqa: E402  they need the path above

from tests.support.servers.redis_server import RealServer  # noqa: E402

PATIENCE_S = 240
_SILENT: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}


@contextmanager
def ground(**options: str) -> Iterator[tuple[RealServer, str, Path]]:
    """A fresh durable server, with these options of `RealServer`, and a fresh file of marks; named to all that is
    started inside."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    url = f"redis://127.0.0.1:{port}/0"  # not all of them know unix sockets
    with RealServer(port=port, bind="127.0.0.1", **options) as server, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "marks"
        os.environ |= {"BENCH_REDIS": url, "TOOLONCE_REDIS_URL": url, marks.FILE: str(path)}
        yield server, url, path


@contextmanager
def workers(
    command: tuple[str, ...], count: int, more: Mapping[str, str] | None = None
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Worker processes, each the leader of a session; `more` is added to their environment."""
    environment = {**os.environ, "PYTHONPATH": str(HERE), **(more or {})}
    started = [subprocess.Popen(command, cwd=HERE, env=environment, **_SILENT) for _ in range(count)]
    try:
        yield started
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)  # some have started others
            process.wait()
