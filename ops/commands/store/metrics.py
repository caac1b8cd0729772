"""`toolonce metrics`: serves metrics of the store and of its events for Prometheus."""

from __future__ import annotations

import argparse
import signal
import threading
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING

from redis.exceptions import RedisError

from ....store.connections.connection import Connection
from ....store.model.errors import StoreUnavailable
from ...errors import Usage
from ...metrics.events import follow, recent
from ...options.parser import command
from ...options.settings import LONG_PATIENCE, open_store
from ...views import logs, render

if TYPE_CHECKING:
    from ...metrics.event_metrics import EventMetrics
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce metrics                            http://127.0.0.1:9464/metrics
toolonce metrics --listen 0.0.0.0:9464
toolonce metrics --once                     print the metrics once, for the textfile collector
"""
RETRY_S = 1.0


def add_parser(subparsers: Subparsers) -> None:
    parser = command(subparsers, "metrics", "Expose metrics for Prometheus", examples=EXAMPLES)
    parser.add_argument(
        "--listen", default="127.0.0.1:9464", metavar="HOST:PORT", help="address to listen on (127.0.0.1:9464)"
    )
    parser.add_argument("--once", action="store_true", help="print the store's metrics and end")
    logs.add_options(parser)


def run(args: argparse.Namespace) -> int:
    if find_spec("prometheus_client") is None:
        raise Usage("metrics need an extra package: pip install 'toolonce[metrics]'")
    from prometheus_client import CollectorRegistry, generate_latest, start_http_server

    from ...metrics.event_metrics import EventMetrics
    from ...metrics.store_metrics import StoreMetrics

    host, _, port = args.listen.rpartition(":")
    if not port.isdigit():
        raise Usage(f"--listen {args.listen!r}: write it as host:port")
    logs.set_up(args)
    registry = CollectorRegistry()
    with open_store(args, patience=LONG_PATIENCE) as connection:
        registry.register(StoreMetrics(connection))
        if args.once:
            for line in generate_latest(registry).decode().splitlines():
                render.show(line)
            return 0
        stop = _stop_on_signals()
        try:
            server, thread = start_http_server(int(port), host or "127.0.0.1", registry)
        except (OSError, OverflowError) as error:
            raise Usage(f"--listen {args.listen!r}: {error}") from error
        render.say(f"metrics at http://{host or '127.0.0.1'}:{server.server_port}/metrics")
        _listen(connection, EventMetrics(registry), stop)
        server.shutdown()
        server.server_close()
        thread.join()
    return 0


def _listen(connection: Connection, metrics: EventMetrics, stop: threading.Event) -> None:
    """Count events until `stop` is set; waits for a store that does not answer."""
    known = recent(connection, 1)
    place = known[-1].place if known else b"0-0"
    while not stop.is_set():
        try:
            for event in follow(connection, place, lambda: not stop.is_set()):
                place = event.place
                metrics.feed(event)
        except (StoreUnavailable, RedisError):
            stop.wait(RETRY_S)


def _stop_on_signals() -> threading.Event:
    stop = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    return stop
