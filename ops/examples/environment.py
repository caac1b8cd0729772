"""What the examples run on: a server of their own and workers for their tools, all of it gone with the example."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ...store.operations.tools import published
from ...stream.harness.client import Client
from ..server.embedded import EmbeddedServer, transient_server
from ..server.termination import signals_as_exceptions


@contextmanager
def server() -> Iterator[EmbeddedServer]:
    """A server on an empty folder."""
    with signals_as_exceptions(), transient_server() as started:
        yield started


@contextmanager
def worker(url: str, module: str, *options: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process for the tools of this module beside us."""
    command = [sys.executable, "-m", "toolonce.ops", "work", "--tools", f"{__package__}.{module}:tools", "--redis", url]
    with subprocess.Popen([*command, *options], env=os.environ | environment, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def wait_for_tools(client: Client) -> None:
    """A worker publishes its tools when it starts; until then nothing can be admitted."""
    while not client.run(published(client.terms.space)).tools:
        time.sleep(0.05)
