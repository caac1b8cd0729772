"""A conversation's journal: numbered entries, each written once. Must not know what they contain."""

from __future__ import annotations

from typing import NamedTuple

from ..model.keys import Namespace
from .operation import Invocation, invocation
from .script_arguments import arguments_of

KEPT_S = 30 * 86_400


@arguments_of("journal")
class JournalArgs(NamedTuple):
    scope: str
    number: int
    entry: str
    kept_s: int


def write(space: Namespace, scope: str, number: int, entry: str, *, kept_s: int = KEPT_S) -> Invocation[str]:
    """Write an entry; returns the one that stands under this number, which is another harness's if it came first."""
    args = JournalArgs(scope=scope, number=number, entry=entry, kept_s=kept_s)
    return invocation(space.root, args, lambda reply: str(reply.decode()))


def read(space: Namespace, scope: str) -> Invocation[tuple[str, ...]]:
    """All entries in their order."""

    def entries(reply: list[bytes]) -> tuple[str, ...]:
        numbered = dict(zip(map(int, reply[::2]), reply[1::2], strict=True))
        return tuple(numbered[number].decode() for number in sorted(numbered))

    return invocation(space.root, JournalArgs(scope=scope, number=0, entry="", kept_s=0), entries)
