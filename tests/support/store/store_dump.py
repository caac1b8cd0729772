"""A store as a file: what a release has written, kept as test data for all later ones.

Logical, not Redis' own DUMP: that is bound to a server's version. Make the dump of a new release, once, with
`python -m tests.support.store.store_dump tests/data/store-<release>.json`; an old one is never made again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import redis

from tests.support.servers.redis_server import RealServer
from tests.support.store.live_store import LiveScene, LiveStore
from tests.support.store.scene import spec
from toolonce.store.model.outcomes import Failure
from toolonce.store.model.record import FIELDS
from toolonce.store.operations.recovery import purge

NAMESPACE = "kept"
YEARS_MS = 100 * 365 * 86_400_000
"""Deadlines of the dump: no test run comes after them."""
STORED: dict[str, tuple[str, Any]] = {
    "text": ("words", "words"), "json": ("{}", "{}"), "lines": ("a\nb", ("a", "b")), "number": ("7", 7),
    "time": ("1700000000000", 1_700_000_000_000), "fraction": ("0.5", 0.5), "flag": ("1", True),
}  # fmt: skip
"""Per type of a field: what the call `whole` has in each that its short life leaves unwritten, and how it is read."""


def raw_client(url: str) -> redis.Redis:
    """A client that reads and writes any bytes as text, one character each: RQ's job data is compressed."""
    return redis.Redis.from_url(url, encoding="latin-1", decode_responses=True)


def dump(client: redis.Redis) -> list[list[Any]]:
    """Every key of the server as [name, type, content], in the order of names."""
    return [[key, client.type(key), _content(client, key)] for key in sorted(client.scan_iter(count=1000))]


def load(client: redis.Redis, dumped: list[list[Any]]) -> None:
    """Write the keys again. Streams keep their ids."""
    for key, kind, content in dumped:
        match kind:
            case "string":
                client.set(key, content)
            case "hash":
                client.hset(key, mapping=content)
            case "list":
                client.rpush(key, *content)
            case "set":
                client.sadd(key, *content)
            case "zset":
                client.zadd(key, dict(content))
            case "stream":
                for entry, fields in content:
                    client.xadd(key, fields, id=entry)


def _content(client: redis.Redis, key: str) -> Any:
    match client.type(key):
        case "string":
            return client.get(key)
        case "hash":
            return client.hgetall(key)
        case "list":
            return client.lrange(key, 0, -1)
        case "set":
            return sorted(client.smembers(key))
        case "zset":
            return client.zrange(key, 0, -1, withscores=True)
        case "stream":
            return client.xrange(key)
        case other:
            raise ValueError(f"{key}: a {other!r} is not dumped")


def fill(scene: LiveScene) -> None:
    """One call in each state; the call id names it, `{"id": <call id>}` are its arguments. And one, `whole`, that has
    every field of the record's table."""
    tool = spec("pay", deadline_ms=YEARS_MS, approval_ms=YEARS_MS)
    scene.publish(tool)

    def terms(name: str) -> dict[str, Any]:
        return {"arguments": {"id": name}, "of": tool, "turn_id": f"turn-{name}"}

    scene.succeeded("succeeded", 0, **terms("succeeded"))
    scene.failed("failed", **terms("failed"))
    scene.submit("refused", **terms("refused"), refusal=Failure("invalid_arguments", "no"))
    scene.cancel(scene.submit("cancelled", **terms("cancelled")))
    scene.submit("held", **terms("held"), held="approval")
    scene.live.run(purge(scene.space, [scene.succeeded("forgotten", 1, **terms("forgotten"))]))
    scene.unknown("unknown", **terms("unknown"))
    scene.submit("running", **terms("running"))
    scene.take(lease_ms=1)
    scene.submit("queued", **terms("queued"))
    whole = scene.submit("whole", **terms("whole"), refusal=Failure("invalid_arguments", "no"))
    written = scene.record(whole).fields.values
    others: dict[Any, Any] = {name: STORED[one.kind][0] for name, one in FIELDS.items() if name not in written}
    scene.live.redis.hset(scene.space.record(whole), mapping=others)


def main(path: str) -> None:
    with RealServer() as server:
        store = LiveStore(server.url, NAMESPACE)
        fill(LiveScene(store))
        with raw_client(server.url) as client:
            text = json.dumps(dump(client), indent=1)
        store.close()
    Path(path).write_text(f"{text}\n")


if __name__ == "__main__":
    main(sys.argv[1])
