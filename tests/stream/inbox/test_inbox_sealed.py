"""Sealed inbox entries: how secrets come in, and who can open what."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.servers.redis_server import RealServer
from tests.support.store.scene import spec
from tests.support.stream.harness import Bench
from tests.support.stream.inbox import Inbox, seal_entry
from toolonce.store.connections.connection import Connection
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.sealing import Sealer
from toolonce.store.operations.runs import Run
from toolonce.stream.inbox.consumer import Consumer

KEY, OLDER = "k" * 32, "o" * 32
KEYS = Keyring.parse(KEY)
SECRET = spec("login", secret=("password",))


def consuming(connection: Connection, **more: Any) -> Iterator[Consumer]:
    consumer = Consumer(connection, name="one", **more)
    yield consumer
    consumer.close()


def test_secrets_come_in_sealed_or_not_at_all(redis_server: RealServer, namespace: str) -> None:
    bench = Bench(redis_server.url, namespace, SECRET)
    box = Inbox(bench)
    calls = json.dumps([{"name": "login", "arguments": {"password": "hunter2"}, "id": "a"}])
    for consumer in consuming(bench.store.connection, keyring=KEYS):
        clear = box.add(scope="talk", turn="clear", calls=calls)
        sealed = box.add(scope="talk", turn="sealed", calls=seal_entry(calls, KEYS, "acme"), sealed="1")
        consumer.step(0.01)

    assert json.loads(box.answers(clear)[1]["error"])["code"] == "unsealed"
    run = bench.scene.take()
    assert isinstance(run, Run)
    opened, _ = Sealer(KEYS, "acme", "login").open_arguments(json.loads(run.arguments), ["password"])
    assert opened == {"password": "hunter2"}
    assert len(box.answers(sealed)) == 1
    ours = [key for key in box.redis.keys(f"{{{namespace}}}:*") if ":rq:job:" not in key]  # RQ's data is compressed
    assert not [key for key in ours if "hunter2" in dump(bench, key)]
    bench.close()


@pytest.mark.parametrize(
    ("token", "is_read"),
    [
        (lambda calls: seal_entry(calls, KEYS, "acme"), True),
        (lambda calls: seal_entry(calls, Keyring.parse(OLDER), "acme"), True),
        (lambda calls: seal_entry(calls, KEYS, "umbrella"), False),
        (lambda calls: seal_entry(calls, Keyring.parse("another key of the tests"), "acme"), False),
        (lambda calls: KEYS.encrypt(calls), False),
    ],
    ids=["newest key", "older key", "another tenant's", "foreign key", "key of records"],
)
def test_an_entry_is_opened_with_an_entry_key_of_its_tenant_only(
    redis_server: RealServer, namespace: str, token: Callable[[str], str], is_read: bool
) -> None:
    """faults 4: who can seal entries of one tenant can open nothing, and speak for no other."""
    bench = Bench(redis_server.url, namespace, SECRET)
    box = Inbox(bench)
    calls = json.dumps([{"name": "login", "arguments": {"password": "hunter2"}, "id": "a"}])
    for consumer in consuming(bench.store.connection, keyring=Keyring.parse(f"{KEY},{OLDER}")):
        entry = box.add(scope="talk", turn="sealed", calls=token(calls), sealed="1")
        consumer.step(0.01)

    state = box.answers(entry)[0]["state"]
    assert state == ("admitted" if is_read else "quarantined")
    if not is_read:
        assert "toolonce keys seal --tenant acme" in box.answers(entry)[0]["error"]
    bench.close()


def dump(bench: Bench, key: str) -> str:
    raw: Any = bench.store.redis
    readers = {"hash": raw.hgetall, "string": raw.get, "list": lambda k: raw.lrange(k, 0, -1), "stream": raw.xrange}
    return str(readers[raw.type(key)](key)) if raw.type(key) in readers else ""
