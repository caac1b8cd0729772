"""Where the demo plays: a server and a worker of its own and a ledger outside both; all gone when it ends.

Decides how they are started, waited for and ended. Knows no step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...store.connections.connection import Connection
from ...store.operations.tools import published
from ...stream.harness.client import Client
from ..errors import OpsError
from ..server.embedded import transient_server
from .ledger import Ledger
from .worker import DemoWorker

SCOPE = "demo/conversation-1"
PATIENCE_SECONDS = 40.0
_POLL_SECONDS = 0.03


class DemoFailed(OpsError):
    """Something that had to happen did not; the line says what."""


@dataclass(slots=True)
class Environment:
    """The running pieces. `echo` names the tools that are made up."""

    url: str
    ledger: Ledger
    log: Path
    echo: tuple[str, ...]
    connection: Connection
    client: Client
    worker: DemoWorker

    def kill_worker(self) -> int:
        """SIGKILL; returns the process that is gone."""
        self.worker.kill()
        return self.worker.process_id

    def start_another_worker(self) -> None:
        self.worker = DemoWorker(self.url, self.ledger.path, self.log, self.echo)

    def wait_until(self, happened: Callable[[], bool], what: str) -> None:
        """Return once it has happened.

        Raises:
            DemoFailed: it does not, or the worker ended by itself.
        """
        until = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            if self.worker.has_ended:
                raise DemoFailed(f"waited until {what}, but the worker ended: {_last_line(self.log)}")
            if time.monotonic() > until:
                raise DemoFailed(f"waited {PATIENCE_SECONDS:.0f} s in vain until {what}; is this machine very busy?")
            time.sleep(_POLL_SECONDS)


@contextmanager
def set_up(echo: Sequence[str]) -> Iterator[Environment]:
    """Start server and worker; whatever happens inside, both are gone afterwards.

    Their files lie in the server's folder: it goes even where this process is killed.
    """
    with transient_server() as server:
        ledger, log, names = Ledger(server.folder / "ledger.sqlite"), server.folder / "worker.log", tuple(echo)
        connection = Connection(server.url)
        worker = DemoWorker(server.url, ledger.path, log, names)
        environment = Environment(server.url, ledger, log, names, connection, Client(server.url, scope=SCOPE), worker)
        try:
            print(
                f"server {server.process_id} and worker {worker.process_id} are ours and end with the demo", flush=True
            )
            environment.wait_until(
                lambda: bool(connection.run(published(connection.space)).tools), "the worker is ready"
            )
            yield environment
        finally:
            environment.worker.kill()
            environment.client.close()
            connection.close()


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "without a word"
