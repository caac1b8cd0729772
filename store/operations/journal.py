"""A conversation's journal: numbered entries, each written once. What is in them is the harness's matter."""

from __future__ import annotations

from ..model.keys import Namespace
from .operation import Invocation, load

KEPT_S = 30 * 86_400


def write(space: Namespace, scope: str, number: int, entry: str, *, kept_s: int = KEPT_S) -> Invocation[str]:
    """Write an entry; returns the one that stands under this number, which is another harness's if it came first."""
    return Invocation(load("journal"), space.root, (scope, number, entry, kept_s), lambda reply: str(reply.decode()))


def read(space: Namespace, scope: str) -> Invocation[tuple[str, ...]]:
    """All entries in their order."""

    def entries(reply: list[bytes]) -> tuple[str, ...]:
        numbered = dict(zip(map(int, reply[::2]), reply[1::2], strict=True))
        return tuple(numbered[number].decode() for number in sorted(numbered))

    return Invocation(load("journal"), space.root, (scope, 0, "", 0), entries)
