"""Checks the options of a worker before it starts: refuses those that protect nothing, and warns of doubtful ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...store.model.errors import KeyringMissing
from ...store.model.keyring import VARIABLE, Keyring
from ...store.model.times import LONGEST_S
from ...store.operations.recovery import Retention
from ..tools.errors import BadTool
from ..tools.registry import Registry

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
    @property
    def retention(self) -> Retention: ...


def check_start(registry: Registry, options: Timing, keyring: Keyring) -> tuple[str, ...]:
    """Warnings to show.

    Raises:
        ValueError: an option that cannot work.
        BadTool: a tool leaves its approval to a hook, and there is none.
        KeyringMissing: a tool has secret fields, and there are no keys to open them.
    """
    if options.concurrency < 1:
        raise ValueError(f"concurrency {options.concurrency}: a worker needs at least one slot")
    if not SHORTEST_LEASE_MS <= options.lease_ms <= LONGEST_S * 1000:
        raise ValueError(
            f"a lease of {options.lease_ms} ms protects nothing; at least {SHORTEST_LEASE_MS} ms is needed"
        )
    _check_retention(registry, options.retention)
    if unasked := [tool.name for tool in registry if registry.rules(tool).lack_a_hook]:
        raise BadTool(
            f"approval='hook' of {', '.join(unasked)} needs a hook: decorate a function with @authorize of the registry"
        )
    sealed = [tool.name for tool in registry if tool.spec.secret or tool.spec.secret_result]
    if sealed and not keyring.keys:
        raise KeyringMissing(
            f"{', '.join(sealed)}: secret fields need keys: export {VARIABLE}=$(openssl rand -hex 32), the same "
            "in each worker and harness"
        )
    return tuple(_doubts(registry, options))


def _check_retention(registry: Registry, keep: Retention) -> None:
    """A submission may be repeated while its call may still wait, be tried again and run. If its outcome were forgotten
    in that time, the repeat would get none; if its mark were forgotten, the call would run again."""
    for tool in registry:
        window_ms = tool.spec.deadline_ms + tool.spec.timeout_ms
        if keep.shortest_ms < window_ms:
            raise ValueError(
                f"settled calls are kept for {keep.shortest_ms / 1000:g} s, but one of {tool.name} may wait, run and "
                f"be tried again for {window_ms / 1000:g} s; keep them longer, or shorten its deadline"
            )
    if keep.tombstone_ms < keep.longest_ms:
        raise ValueError(
            f"the mark of a call is kept for {keep.tombstone_ms / 1000:g} s, shorter than its body "
            f"({keep.longest_ms / 1000:g} s): without it the call could run again"
        )


def _doubts(registry: Registry, options: Timing) -> list[str]:
    limits = {tool.name: tool.spec.timeout_ms for tool in registry}
    doubts = []
    if limits and (longest := max(limits, key=lambda name: limits[name] or float("inf"))):
        seconds = limits[longest] / 1000
        length = f"{seconds:g} s" if seconds else "forever"
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
