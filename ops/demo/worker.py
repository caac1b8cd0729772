"""The demo's worker: a process of its own, so that it can be killed, and one that never outlives the demo.

Run as `python -m toolonce.ops.demo.worker URL LEDGER [TOOL ...]`. Its standard input is held open by the demo: where
that ends, the demo is gone, however it went.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from ...store.connections.connection import Connection
from .ledger import Ledger
from .tools import demo_tools

LEASE_MS = 2_000
"""Short, so that the killed worker's call is found within the patience of someone who watches."""
CONCURRENCY = 4


class DemoWorker:
    """A worker process; usable as a context manager, after which it is gone."""

    def __init__(self, url: str, ledger: Path, log: Path, echo: Sequence[str] = ()) -> None:
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.worker", url, str(ledger), *echo],
                stdin=subprocess.PIPE,
                stdout=stderr,
                stderr=stderr,
                start_new_session=True,  # a Ctrl-C is the demo's; it ends its worker itself
            )

    @property
    def process_id(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        """SIGKILL to the worker and all it started; returns when it is gone."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdin:
            self._process.stdin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()


def main(arguments: Sequence[str]) -> int:
    """Serve the demo's tools until the demo ends."""
    from ...worker.runtime.process import Options, run_worker  # RQ's machinery: the demo itself does without

    url, ledger, *echo = arguments
    threading.Thread(target=_end_with_the_demo, daemon=True).start()
    connection = Connection(url)
    tools = demo_tools(Ledger(Path(ledger)), echo=echo)
    return run_worker(connection, tools, Options(concurrency=CONCURRENCY, lease_ms=LEASE_MS))


def _end_with_the_demo() -> None:
    os.read(0, 1)
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
