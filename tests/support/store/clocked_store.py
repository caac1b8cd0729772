"""A store whose clock stands still until a test moves it: no sleeps, and every lease ends exactly when it is told to.

The scripts ask the server for the time in one line. Here that line reads a key instead; everything else of the
scripts is what ships. On fakeredis the `#!lua` line goes too, which it does not know.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha1
from typing import Any, TypeVar

import fakeredis
import redis

from toolonce.store.connections.connection import Connection
from toolonce.store.model.keys import Namespace
from toolonce.store.operations.operation import Acknowledged, Invocation, Operation, Query, Script

T = TypeVar("T")

ASKS_SERVER = "local clock = redis.call('TIME')\n"
ASKS_TEST = "local clock = { redis.call('GET', root .. 'test:seconds'), redis.call('GET', root .. 'test:micros') }\n"
START_MS = 1_800_000_000_000


def with_test_clock(script: Script) -> Script:
    """The same script on the test's clock."""
    assert script.text.count(ASKS_SERVER) == 1, f"{script.name} asks for the time in another way than the ledger"
    text = script.text.replace(ASKS_SERVER, ASKS_TEST)
    return replace(script, text=text, sha=sha1(text.encode(), usedforsecurity=False).hexdigest())


@dataclass
class ClockedStore:
    """Runs operations on a server under the test's clock. `redis` is a client beside it, for looking and planting."""

    space: Namespace
    redis: Any  # redis.Redis; its annotations do not know that `decode_responses` turns bytes into text
    connection: Connection | None = None
    raw: Any = None

    @classmethod
    def real(cls, url: str, namespace: str) -> ClockedStore:
        client = redis.Redis.from_url(url, decode_responses=True)
        return cls(Namespace(namespace), client, Connection(url, namespace=namespace)).at(START_MS)

    @classmethod
    def fake(cls, namespace: str) -> ClockedStore:
        server = fakeredis.FakeServer()
        in_text, in_bytes = (fakeredis.FakeRedis(server=server, decode_responses=text) for text in (True, False))
        return cls(Namespace(namespace), in_text, raw=in_bytes).at(START_MS)

    @property
    def is_real(self) -> bool:
        return self.connection is not None

    @property
    def now(self) -> int:
        root = self.space.root
        return int(self.redis.get(f"{root}test:seconds")) * 1000 + int(self.redis.get(f"{root}test:micros")) // 1000

    def at(self, now_ms: int) -> ClockedStore:
        root = self.space.root
        self.redis.mset({f"{root}test:seconds": now_ms // 1000, f"{root}test:micros": now_ms % 1000 * 1000})
        return self

    def advance(self, ms: int) -> None:
        self.at(self.now + ms)

    def run(self, operation: Operation[T]) -> T:
        if isinstance(operation, Query):
            return self._ask(operation)
        if isinstance(operation, Acknowledged):  # this server has no replicas
            return operation.read(self._clocked(operation.invocation), 0)
        return operation.read(self._clocked(operation))

    def _clocked(self, operation: Invocation[Any]) -> Any:
        clocked = replace(operation, script=with_test_clock(operation.script), read=lambda reply: reply)
        if self.connection is not None:
            return self.connection.run(clocked)
        return self._evaluate(clocked)

    def close(self) -> None:
        keys = list(self.redis.scan_iter(f"{self.space.root}*", count=1000))
        if keys:
            self.redis.delete(*keys)  # in one step: each is an fsync
        self.redis.close()
        if self.raw is not None:
            self.raw.close()
        if self.connection is not None:
            self.connection.close()

    def _ask(self, query: Query[T]) -> T:
        if self.connection is not None:
            return self.connection.run(query)
        return query.read([self.raw.execute_command(*command) for command in query.commands])

    def _evaluate(self, invocation: Invocation[Any]) -> Any:
        text = invocation.script.text
        if text.startswith("#!"):
            text = text.partition("\n")[2]
        assert self.raw is not None
        return self.raw.eval(text, 1, invocation.root, *invocation.args)  # replies in bytes, as the store reads them
