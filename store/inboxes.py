"""The inbox streams as the store sees them: parking what cannot be read. Admission acknowledges the rest itself."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from .admission import InboxEntry
from .keys import Namespace
from .scripts import Arg, Invocation, load

FIELDS_KEPT = 50
"""Of a strange entry, to look at: a readable one has at most ten. Lua can take some thousands at once, and no more."""


def park(space: Namespace, entry: InboxEntry, fields: Mapping[bytes, bytes], reason: str) -> Invocation[bool]:
    """Put an entry aside with the reason and acknowledge it, in one step; False where that was done before."""
    args: list[Arg] = [entry.stream, entry.group, entry.entry, reason, entry.answers]
    for name, value in islice(fields.items(), FIELDS_KEPT):
        args += (name, value)
    return Invocation(load("park"), space.root, tuple(args), lambda reply: reply == 1)
