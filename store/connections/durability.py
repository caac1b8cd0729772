"""Checks that a server is durable, before anything is admitted or run.

Durable means: ``appendonly yes`` and ``appendfsync always``, so that a reply comes after its fsync, and no eviction.
``everysec`` has lost acknowledged writes to a plain kill on a slow disk; nothing less than ``always`` counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from redis.exceptions import ResponseError

from ..model.errors import StoreUnsafe
from .connection import CLUSTER, Connection
from .server_info import read_config, read_info

OLDEST = (7, 0)
"""Script flags (allow-oom) came with 7.0."""


class Durability(StrEnum):
    """How strictly the server is checked."""

    STRICT = "strict"
    """Checked, else refused. The default."""
    DECLARED = "declared"
    """The operator is sure of a server whose settings cannot be read (managed services)."""
    VOLATILE = "volatile"
    """For trials: the server may lose writes, and with them that a call has run."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The settings of a server; None where it does not allow to read them."""

    version: tuple[int, ...]
    cluster: bool
    appendonly: str | None
    appendfsync: str | None
    eviction: str | None


def read_settings(connection: Connection) -> ServerSettings:
    """Ask the server.

    Raises:
        StoreUnavailable: it does not answer.
    """
    info = read_info(connection)
    version = info.get("valkey_version") or info.get("redis_version", "0")
    return ServerSettings(
        version=tuple(int(part) for part in version.split(".")[:3] if part.isdigit()),
        cluster=info.get("cluster_enabled") == "1",
        appendonly=read_config(connection, "appendonly"),
        appendfsync=read_config(connection, "appendfsync"),
        eviction=read_config(connection, "maxmemory-policy") or info.get("maxmemory_policy"),
    )


def require(connection: Connection, level: Durability) -> tuple[str, ...]:
    """Refuse a server that would break the guarantees at this level; returns warnings to show.

    Raises:
        StoreUnsafe: with the cause and the way out.
        StoreUnavailable: the server does not answer.
    """
    settings = read_settings(connection)
    if settings.version[:2] < OLDEST:
        raise StoreUnsafe(f"server version {'.'.join(map(str, settings.version))}: at least 7.0 is needed")
    if settings.cluster:
        raise StoreUnsafe(CLUSTER)
    faults = _faults(settings)
    if faults and level is Durability.STRICT:
        raise StoreUnsafe(
            f"{faults[0]}; correct it, or start with --durability declared (not checked) or volatile (may lose writes)"
        )
    return tuple(f"durability {level}: {fault}" for fault in faults)


def refuse_cluster(connection: Connection) -> None:
    """Refuse a node of a Redis Cluster by what it reports, before its errors would show it in many forms.

    Raises:
        StoreUnsafe: it is one.
        StoreUnavailable: the server does not answer.
    """
    try:
        info = read_info(connection, "cluster")
    except ResponseError:
        return  # it does not let us ask; each command will tell
    if info.get("cluster_enabled") == "1":
        raise StoreUnsafe(CLUSTER)


def _faults(settings: ServerSettings) -> list[str]:
    faults = []
    if settings.appendonly is None or settings.appendfsync is None:
        faults.append("the server does not show whether it fsyncs before it answers (CONFIG is barred)")
    elif settings.appendonly != "yes":
        faults.append("the server keeps nothing on disk: CONFIG SET appendonly yes")
    elif settings.appendfsync != "always":
        faults.append(
            f"appendfsync is {settings.appendfsync}: acknowledged writes can be lost: CONFIG SET appendfsync always"
        )
    if settings.eviction is None:
        faults.append("the server does not show its eviction policy")
    elif settings.eviction != "noeviction":
        faults.append(f"the server may evict records ({settings.eviction}): CONFIG SET maxmemory-policy noeviction")
    return faults
