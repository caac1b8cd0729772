"""Admission stops before Redis is full, so that what was admitted can still be claimed, run and settled.

Admission asks the server by itself, now and then (`_memory.lua`); workers ask too, so that the flag falls where nobody
submits. What a worker may still take where Redis is over its limit is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from redis.exceptions import ResponseError

from ..model.errors import StoreFull
from ..model.keys import Namespace
from ..operations.operation import Invocation, invocation
from ..operations.script_arguments import arguments_of
from .connection import Connection
from .server_info import read_info

OVERDRAFT, LEAST_OVERDRAFT = 0.1, 16 << 20
"""Share of ``maxmemory``, and at least so many bytes, by which workers may pass it. Results may be larger than anyone
expected, and what else uses the server may fill it; what waits must work itself off all the same, but not fill the
machine."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Per mille of ``maxmemory``: admission stops at `stop` and goes on below `resume`.

    What open calls will still write counts as used already (`_memory.lua`); the rest of the gap is for everything else.
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


@arguments_of("watermark")
class WatermarkArgs(NamedTuple):
    used: int
    allowed: int
    stop: int
    resume: int


@arguments_of("take")
class TakeArgs(NamedTuple):
    queue: str
    share: float
    least_bytes: int


def watermark(space: Namespace, memory: Memory, marks: Marks | None = None) -> Invocation[bool]:
    """Raise or lower the flag that stops admission; returns whether it stands now."""
    marks = marks or Marks()
    args = WatermarkArgs(used=memory.used, allowed=memory.allowed, stop=marks.stop, resume=marks.resume)
    return invocation(space.root, args, lambda reply: reply == 1)


def take(space: Namespace, queue: str) -> Invocation[bytes | None]:
    """The next pointer of a queue, on a server over its memory limit, which refuses ``BLMOVE``; None for none.

    Raises (when run):
        StoreFull: the server is so far over its limit that nothing is taken; nothing was written.
    """

    def read(reply: bytes) -> bytes | None:
        if reply == b"full":
            raise StoreFull("Redis is far over its memory limit; calls wait until there is room")
        return reply or None

    return invocation(space.root, TakeArgs(queue=queue, share=OVERDRAFT, least_bytes=LEAST_OVERDRAFT), read)
