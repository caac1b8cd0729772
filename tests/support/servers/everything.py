"""All that a server holds, and all that it has ever written: for tests that look for what must be nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis

from tests.support.servers.redis_server import RealServer


def everything_stored(server: RealServer) -> Iterator[str]:
    reads: dict[str, Any] = {
        "string": lambda c, key: c.get(key),
        "hash": lambda c, key: c.hgetall(key),
        "list": lambda c, key: c.lrange(key, 0, -1),
        "set": lambda c, key: c.smembers(key),
        "zset": lambda c, key: c.zrange(key, 0, -1),
        "stream": lambda c, key: c.xrange(key),
    }
    with redis.Redis.from_url(server.url) as client:  # in bytes: RQ's own fields are compressed
        for key in client.scan_iter(count=1000):
            yield f"{key!r} {reads[client.type(key).decode()](client, key)}"


def files_of(folder: Path) -> Iterator[bytes]:
    return (path.read_bytes() for path in folder.rglob("*") if path.is_file())
