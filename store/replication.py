"""Which writes a failover cannot take back: how many replicas there are, and how many have a write.

Replication is asynchronous. WAIT says how many replicas have a write, not which; so a write is safe when all replicas
have it that there ever were, also those that are away now: any of them may be promoted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from redis.exceptions import ResponseError

from .addresses import listed_replicas
from .connection import Connection, Link
from .errors import StoreUnavailable
from .keys import Namespace
from .query import Acknowledged, Query
from .scripts import Invocation, load, number
from .server_word import read_info

T = TypeVar("T")
WAIT_MS = 1_000
"""How long a write waits for its replicas. They answer in a round trip; one that takes a second is as good as away."""


def acknowledged(invocation: Invocation[T], replicas: int, *, wait_ms: int = WAIT_MS) -> Acknowledged[tuple[T, int]]:
    """The same, and how many replicas have what it has written, of `replicas` that are waited for."""
    return Acknowledged(invocation, replicas, wait_ms, lambda reply, acked: (invocation.read(reply), int(acked)))


def note_replicas(space: Namespace, seen: int = 0) -> Invocation[int]:
    """Keep the largest number of replicas that was ever seen, and tell it. Each run is a write: acknowledged, it says
    how many replicas have everything written before it."""
    return Invocation(load("replicas"), space.root, (seen,), int)


def known_replicas(space: Namespace) -> Query[int]:
    """The largest number of replicas that was ever seen, without a write."""
    return Query([("GET", f"{space.root}replicas")], lambda replies: number(replies[0]))


def attached(info: Mapping[str, str]) -> int:
    """How many replicas follow this server now, by its INFO. One that is still being filled does not count: it may be a
    backup that is being taken."""
    states = (info[f"slave{number}"] for number in range(int(info.get("connected_slaves", 0))))
    return sum("state=online" in state for state in states)


def count_replicas(connection: Connection, link: Link) -> int:
    """How many replicas there are now, by the primary and by the Sentinels, which also know those that are away.

    Raises:
        StoreUnavailable: the server does not answer, or does not let us ask.
    """
    try:
        following = attached(read_info(link, "replication"))
    except ResponseError as error:
        raise StoreUnavailable(f"the server does not show its replicas: {error}") from error
    return max(following, listed_replicas(connection.pool))
