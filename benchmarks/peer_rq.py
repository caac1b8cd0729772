"""RQ's SimpleWorker, as it comes."""

from __future__ import annotations

import logging
import os
import sys

from marks import mark
from redis import Redis
from rq import Queue, SimpleWorker

client = Redis.from_url(os.environ["BENCH_REDIS"])


def noop(n: int) -> int:
    return mark(n)


def enqueue(count: int) -> None:
    queue = Queue(connection=client)
    for n in range(count):
        queue.enqueue("peer_rq.noop", n)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    sys.exit(not SimpleWorker([Queue(connection=client)], connection=client).work(logging_level="CRITICAL"))
