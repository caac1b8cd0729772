"""A reply is lost after the write and the operation is sent again: nothing happens twice, the answer is the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

import pytest

from tests.support.servers.proxy import FaultProxy
from tests.support.servers.redis_server import RealServer
from tests.support.store.clocked_store import ClockedStore, with_test_clock
from tests.support.store.moves import MOVES
from tests.support.store.scene import Scene
from toolonce.store.connections.connection import Connection, Patience
from toolonce.store.model.errors import StoreUnavailable
from toolonce.store.operations.operation import Invocation, Operation, Query, load, names
from toolonce.store.operations.tools import publish

T = TypeVar("T")


class LossyStore(ClockedStore):
    """A store on whose line the first reply to every operation is lost."""

    proxy: FaultProxy
    lost = 0

    @classmethod
    def behind(cls, proxy: FaultProxy, server: RealServer, namespace: str) -> LossyStore:
        clear = ClockedStore.real(server.url, namespace)
        for name in names():
            clear.redis.script_load(with_test_clock(load(name)).text)
        lossy = cls(clear.space, clear.redis, Connection(proxy.url, namespace=namespace))
        lossy.proxy = proxy
        return lossy

    def run(self, operation: Operation[T]) -> T:
        if isinstance(operation, Query):
            self.proxy.drop_reply_to(b"HMGET")
        else:
            assert isinstance(operation, Invocation)
            self.proxy.drop_reply_to(with_test_clock(operation.script).sha.encode())
        self.lost += 1
        out = super().run(operation)
        assert not self.proxy.armed
        return out


@pytest.fixture
def proxy(redis_server: RealServer) -> Iterator[FaultProxy]:
    with FaultProxy(redis_server.socket) as proxy:
        yield proxy


@pytest.mark.parametrize("key", MOVES, ids=lambda key: "-".join(map(str, key)))
def test_each_move_comes_out_the_same_when_every_reply_on_the_way_is_lost_once(
    redis_server: RealServer, proxy: FaultProxy, namespace: str, key: tuple[str | None, str, str]
) -> None:
    lossy = LossyStore.behind(proxy, redis_server, f"{namespace}-lossy")
    clear = ClockedStore.real(redis_server.url, f"{namespace}-clear")
    ends = [summary(Scene(store), MOVES[key]) for store in (clear, lossy)]
    lost = lossy.lost
    lossy.close()
    clear.close()
    assert ends[0] == ends[1]
    assert lost > 0


def summary(scene: Scene, way: object) -> dict[str, object]:
    """What came of a scenario, without what is random in it."""
    assert callable(way)
    record = scene.record(way(scene))
    names = ("state", "attempt", "fence", "result", "error", "reason", "begun")
    kept = {name: record.fields.values.get(name) for name in names}
    kept["reason"] = re.sub(
        r"^[0-9a-f]{32}$", "a call", kept["reason"] or ""
    )  # its key is another one in each namespace
    stats = scene.stats()
    return {
        **kept,
        "history": [(event["op"], event.get("from"), event.get("to")) for event in record.history],
        "evidence": len(record.evidence),
        "counts": stats.counts,
        "fence": stats.fence,
        "queues": stats.queues,
    }


def test_a_request_that_never_arrived_is_sent_again(real_scene: Scene, proxy: FaultProxy) -> None:
    lossy = Scene(replace(real_scene.store, connection=Connection(proxy.url, namespace=real_scene.space.name)))
    proxy.drop_request(b"EVALSHA", times=3)
    assert lossy.start().attempt == 1
    assert lossy.store.connection is not None
    lossy.store.connection.close()


def test_a_server_that_stays_away_is_named_in_one_line(redis_server: RealServer, proxy: FaultProxy) -> None:
    connection = Connection(proxy.url, patience=Patience(reply=1, total=0.05))
    proxy.drop_request(b"EVALSHA", times=1_000)
    with pytest.raises(StoreUnavailable, match="no answer from Redis") as caught:
        connection.run(publish(connection.space, []))
    assert "\n" not in str(caught.value)
    connection.close()


def test_a_restarted_server_is_found_again_with_all_that_was_admitted(own_server: RealServer) -> None:
    scene = Scene(ClockedStore.real(own_server.url, "restart"))
    run = scene.start("a")
    scene.submit("b")
    own_server.restart()
    assert scene.settle(run, 7).verdict == "settled"
    assert scene.take().call_id == "b"
    scene.store.close()


def test_an_interrupted_exchange_never_answers_the_next_question(
    redis_server: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal may raise at any line, also between sending and reading; the reply on its way is nobody's then."""
    connection = Connection(redis_server.url)
    link = connection.dedicated()
    link.command("SET", "toolonce-test-a", "of the first")
    raw = link._raw
    with monkeypatch.context() as patch:
        patch.setattr(raw, "read_response", interrupted)
        with pytest.raises(KeyboardInterrupt):
            link.command("GET", "toolonce-test-a")
    assert link.command("ECHO", "second") == b"second"
    link.command("DEL", "toolonce-test-a")
    link.close()
    connection.close()


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt
