"""Which writes a failover cannot take back: how many replicas there are, and how many have a write.

Replication is asynchronous. WAIT says how many replicas have a write, not which; so a write is safe when all replicas
have it that there ever were, also those that are away now: any of them may be promoted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from redis.exceptions import ResponseError

from ..model.errors import StoreUnavailable
from ..model.keys import Namespace
from ..operations.operation import Acknowledged, Invocation, Query, invocation, number
from ..operations.script_arguments import arguments_of
from .connection import Connection, Link
from .server_info import parse_info, read_info
from .urls import listed_replicas

T = TypeVar("T")
WAIT_MS = 1_000
"""How long a write waits for its replicas. They answer in a round trip; one that takes a second counts as away."""


@arguments_of("replicas")
class ReplicasArgs(NamedTuple):
    seen: int


def acknowledged(invocation: Invocation[T], replicas: int, *, wait_ms: int = WAIT_MS) -> Acknowledged[tuple[T, int]]:
    """The same, and how many replicas have what it has written, of `replicas` that are waited for."""
    return Acknowledged(invocation, replicas, wait_ms, lambda reply, acked: (invocation.read(reply), int(acked)))


def note_replicas(space: Namespace, seen: int = 0) -> Invocation[int]:
    """Keep the largest number of replicas that was ever seen, and tell it. Each run is a write: acknowledged, it says
    how many replicas have everything written before it."""
    return invocation(space.root, ReplicasArgs(seen=seen), int)


def known_replicas(space: Namespace) -> Query[int]:
    """The largest number of replicas that was ever seen, without a write."""
    return Query([("GET", space.replicas)], lambda replies: number(replies[0]))


def needed_replicas(space: Namespace) -> Query[int]:
    """How many replicas must have a write that no failover may lose: as many as there ever were, or follow now."""

    def read(replies: Sequence[Any]) -> int:
        return max(number(replies[0]), len(following(parse_info(replies[1]))))

    return Query([("GET", space.replicas), ("INFO", "replication")], read)


def following(info: Mapping[str, str]) -> list[tuple[str, int]]:
    """Host and port of the replicas that follow this server now, by its INFO. One that is still being filled does not
    count: it may be a backup that is being taken."""
    lines = (info[f"slave{number}"] for number in range(int(info.get("connected_slaves", 0))))
    told = (dict(part.split("=", 1) for part in line.split(",") if "=" in part) for line in lines)
    return [(one.get("ip", ""), int(one.get("port", 0))) for one in told if one.get("state") == "online"]


def count_replicas(connection: Connection, link: Link) -> int:
    """How many replicas there are now, by the primary and by the Sentinels, which also know those that are away.

    Raises:
        StoreUnavailable: the server does not answer, or does not let us ask.
    """
    try:
        found = following(read_info(link, "replication"))
    except ResponseError as error:
        raise StoreUnavailable(f"the server does not show its replicas: {error}") from error
    return max(len(found), listed_replicas(connection.pool))
