"""What is looked at before a worker starts: options that protect nothing are refused, doubtful ones are named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..store.errors import KeyringMissing
from ..store.keyring import VARIABLE, Keyring
from .registry import Registry

SHORTEST_LEASE_MS = 300


class Timing(Protocol):
    """The options that are checked."""

    @property
    def queues(self) -> Sequence[str]: ...
    @property
    def concurrency(self) -> int: ...
    @property
    def lease_ms(self) -> int: ...
    @property
    def grace_s(self) -> float: ...


def check_start(registry: Registry, options: Timing, keyring: Keyring) -> tuple[str, ...]:
    """Warnings to show.

    Raises:
        ValueError: an option that cannot work.
        KeyringMissing: a tool has secret fields, and there are no keys to open them.
    """
    if options.concurrency < 1:
        raise ValueError(f"concurrency {options.concurrency}: a worker needs at least one slot")
    if options.lease_ms < SHORTEST_LEASE_MS:
        raise ValueError(
            f"a lease of {options.lease_ms} ms protects nothing; at least {SHORTEST_LEASE_MS} ms is needed"
        )
    sealed = [tool.name for tool in registry if tool.spec.secret or tool.spec.secret_result]
    if sealed and not keyring.keys:
        raise KeyringMissing(f"{', '.join(sealed)}: secret fields need keys: set {VARIABLE}")
    return tuple(_doubts(registry, options))


def _doubts(registry: Registry, options: Timing) -> list[str]:
    limits = {tool.name: tool.spec.timeout_ms for tool in registry}
    doubts = []
    if limits and (longest := max(limits, key=lambda name: limits[name] or float("inf"))):
        seconds = limits[longest] / 1000
        length = f"{seconds:g} s" if seconds else "for ever"
        if not seconds or seconds > options.grace_s:
            doubts.append(
                f"stopping waits {options.grace_s:g} s, but {longest} may run {length}: calls that a stop cuts off "
                "become unknown; raise --grace, and the supervisor's own limit above it"
            )
    served = set(options.queues)
    idle = [tool.name for tool in registry if served and tool.spec.queue not in served]
    if idle:
        doubts.append(f"no queue served here holds calls of {', '.join(idle)}; another worker has to")
    return doubts
