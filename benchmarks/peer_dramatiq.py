"""dramatiq with results in Redis."""

from __future__ import annotations

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
from marks import mark

URL = os.environ["BENCH_REDIS"]
broker = RedisBroker(url=URL)
broker.add_middleware(Results(backend=RedisBackend(url=URL)))
dramatiq.set_broker(broker)


@dramatiq.actor(store_results=True)
def noop(n: int) -> int:
    return mark(n)


def enqueue(count: int) -> None:
    for n in range(count):
        noop.send(n)
