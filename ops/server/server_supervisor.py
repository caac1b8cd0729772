"""Keeps an embedded server up while a command runs: started again when it was killed or has ended by itself.

Decides how often to look and what to say. How a server is found and started is decided in `embedded`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import EmbeddedServerError
from .embedded import EmbeddedServer

# Clients wait and ask again for seconds; a look costs one round trip over a unix socket.
_LOOK_SECONDS = 0.25
_log = logging.getLogger(__name__)


@contextmanager
def kept_up(server: EmbeddedServer) -> Iterator[None]:
    """Look after the server until the block ends; what goes wrong meanwhile is logged, and tried again."""
    stop = threading.Event()
    supervisor = threading.Thread(target=_keep, args=(server, stop), name="embedded-server-supervisor", daemon=True)
    supervisor.start()
    try:
        yield
    finally:
        stop.set()
        supervisor.join()


def _keep(server: EmbeddedServer, stop: threading.Event) -> None:
    complaint = ""
    while not stop.wait(_LOOK_SECONDS):
        if server.is_alive():
            complaint = ""
            continue
        before, cause = server.process_id, server.last_words()
        try:
            server.revive()
        except EmbeddedServerError as error:
            if str(error) != complaint:  # a full disk stays full for a while: said once
                complaint = str(error)
                _log.error("%s", complaint)
        else:
            _log.warning("%s", _what_happened(before, server.process_id, cause))


def _what_happened(before: int, after: int, cause: str) -> str:
    if before == after:
        return "the embedded server did not answer for a while; it answers again"
    return f"the embedded server ended ({cause}); it is up again with its data"
