"""The store's counters, with every queue that is known to anyone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...store.operations.queries import Stats, stats
from ...store.operations.tools import published

if TYPE_CHECKING:
    from ...store.connections.connection import Connection


def read_stats(connection: Connection) -> Stats:
    """The counters, with every queue that a published tool or a waiting call names."""
    return connection.run(stats(connection.space, queues(connection)))


def queues(connection: Connection) -> tuple[str, ...]:
    """Queues of this namespace: those of published tools, and those that RQ knows of."""
    specs = connection.run(published(connection.space)).tools.values()
    prefix = connection.space.queue_key("").encode()
    listed = connection.command("SMEMBERS", connection.space.rq_queues)
    seen = {key.removeprefix(prefix).decode() for key in listed if key.startswith(prefix)}
    return tuple(sorted({"default"} | seen | {spec.queue for spec in specs}))
