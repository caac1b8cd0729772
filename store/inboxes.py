"""The inbox streams as the store sees them: parking what cannot be read. Admission acknowledges the rest itself."""

from __future__ import annotations

from collections.abc import Mapping

from .admission import InboxEntry
from .keys import Namespace
from .scripts import Arg, Invocation, load


def park(space: Namespace, entry: InboxEntry, fields: Mapping[bytes, bytes], reason: str) -> Invocation[bool]:
    """Put an entry aside with the reason and acknowledge it, in one step; False where that was done before."""
    args: list[Arg] = [entry.stream, entry.group, entry.entry, reason, entry.answers]
    for name, value in fields.items():
        args += (name, value)
    return Invocation(load("park"), space.root, tuple(args), lambda reply: reply == 1)
