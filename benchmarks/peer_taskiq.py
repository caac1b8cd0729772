"""taskiq on a Redis stream, with results in Redis."""

from __future__ import annotations

import asyncio
import os

from marks import mark
from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker

URL = os.environ["BENCH_REDIS"]
broker = RedisStreamBroker(URL).with_result_backend(RedisAsyncResultBackend(URL))


@broker.task(task_name="noop")
async def noop(n: int) -> int:
    return mark(n)


async def _enqueue(count: int) -> None:
    await broker.startup()
    for n in range(count):
        await noop.kiq(n)
    await broker.shutdown()


def enqueue(count: int) -> None:
    asyncio.run(_enqueue(count))
