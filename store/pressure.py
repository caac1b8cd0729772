"""Admission stops before Redis is full, so that what was admitted can still be claimed, run and settled.

Decides the marks and reads the server's word about its memory; scripts cannot ask for it. What the flag stops is
`admit.lua`'s business.
"""

from __future__ import annotations

from dataclasses import dataclass

from redis.exceptions import ResponseError

from .connection import Connection
from .keys import Namespace
from .scripts import Invocation, load
from .server_word import read_info


@dataclass(frozen=True, slots=True)
class Marks:
    """Per mille of ``maxmemory``: admission stops at `stop` and goes on below `resume`.

    The gap to the limit is for what is already admitted: a claim and a settle need some kB each.
    """

    stop: int = 900
    resume: int = 850


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes, as the server counts them; `allowed` is 0 where there is no limit."""

    used: int
    allowed: int


def read_memory(connection: Connection) -> Memory | None:
    """Ask the server; None where it does not let us (managed services without INFO).

    Raises:
        StoreUnavailable: it does not answer.
    """
    try:
        info = read_info(connection, "memory")
    except ResponseError:
        return None
    return Memory(int(info["used_memory"]), int(info["maxmemory"]))


def watermark(space: Namespace, memory: Memory, marks: Marks | None = None) -> Invocation[bool]:
    """Raise or lower the flag that stops admission; returns whether it stands now."""
    marks = marks or Marks()
    args = (memory.used, memory.allowed, marks.stop, marks.resume)
    return Invocation(load("watermark"), space.root, args, lambda reply: reply == 1)
