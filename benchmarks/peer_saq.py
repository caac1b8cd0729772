"""SAQ, with 50 jobs at once: more than its default, and its better number."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from marks import mark
from saq import Queue

queue = Queue.from_url(os.environ["BENCH_REDIS"])


async def noop(ctx: dict[str, Any], *, n: int) -> int:
    return mark(n)


settings = {"queue": queue, "functions": [noop], "concurrency": 50}


async def _enqueue(count: int) -> None:
    await queue.connect()
    for n in range(count):
        await queue.enqueue("noop", n=n)
    await queue.disconnect()


def enqueue(count: int) -> None:
    asyncio.run(_enqueue(count))
