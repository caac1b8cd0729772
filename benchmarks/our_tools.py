"""Our tools for the benchmarks."""

from __future__ import annotations

import asyncio
import time

from marks import mark

from toolonce.worker import Registry

tools = Registry()


@tools.tool(effect="mutating")
def noop(n: int) -> int:
    """Do nothing."""
    return mark(n)


@tools.tool(effect="mutating")
def crunch(n: int) -> int:
    """Compute for 1 ms of this thread's time."""
    until = time.thread_time() + 0.001
    while time.thread_time() < until:
        pass
    return mark(n)


@tools.tool(effect="mutating")
def nap(n: int) -> int:
    """Sleep 50 ms in a thread."""
    time.sleep(0.05)
    return mark(n)


@tools.tool(effect="mutating")
async def nap_async(n: int) -> int:
    """Sleep 50 ms on the event loop."""
    await asyncio.sleep(0.05)
    return mark(n)
