"""The client over asyncio: the same answers, and two thousand waits at once on a handful of connections."""

from __future__ import annotations

import asyncio
import resource
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.servers.proxy import FaultProxy
from tests.support.servers.redis_server import RealServer
from tests.support.stream.harness import PAY, Bench, calls
from tests.support.stream.turns import Asked, turn
from toolonce.store.connections.async_connection import AsyncConnection
from toolonce.store.connections.connection import Patience
from toolonce.store.model.errors import StoreUnavailable
from toolonce.store.model.states import State
from toolonce.store.operations.runs import progress
from toolonce.stream.harness import async_client
from toolonce.stream.harness.async_client import AsyncClient

TURNS, WAITS = 200, 2_000
CONNECTIONS = 8


@pytest.fixture(autouse=True)
def _few_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_client, "CONNECTIONS", CONNECTIONS)


def run(main: Callable[[], Any]) -> Any:
    return asyncio.run(main())


@asynccontextmanager
async def client_of(bench: Bench) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(bench.url, scope="tenant-1/talk-1", namespace=bench.namespace) as client:
        yield client


async def until(predicate: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not predicate():
            await asyncio.sleep(0.005)


def subscribed(bench: Bench) -> int:
    return len(bench.store.redis.pubsub_channels(f"{{{bench.namespace}}}:wake:*"))


def test_a_turn_is_submitted_waited_for_and_replied_to(bench: Bench) -> None:
    async def main() -> None:
        async with client_of(bench) as client:
            batch = await client.submit(
                turn("anthropic", [Asked("pay", "toolu_1", {"n": 1}), Asked("look", "toolu_2")])
            )
            waiting = asyncio.create_task(batch.wait(20))
            await until(lambda: subscribed(bench))
            await asyncio.to_thread(bench.run_all, ["one", "two"])
            outcomes = await waiting
            assert [outcome.value for outcome in outcomes] == ["one", "two"]
            [message] = batch.replies()
            assert [block["tool_use_id"] for block in message["content"]] == ["toolu_1", "toolu_2"]

    run(main)


def test_a_wait_limit_is_no_error_and_the_turn_can_be_picked_up(bench: Bench) -> None:
    async def main() -> None:
        async with client_of(bench) as client:
            batch = await client.submit_calls(calls(1), turn_id="t")
            assert [outcome.state for outcome in await batch.wait(0.05)] == [State.QUEUED]
        await asyncio.to_thread(bench.run_next, "later")
        async with client_of(bench) as other:
            picked_up = await other.batch("t")
            assert [outcome.value for outcome in await picked_up.wait(5)] == ["later"]

    run(main)


def test_each_outcome_comes_as_its_call_comes_to_rest_and_progress_before_it(bench: Bench) -> None:
    async def main() -> None:
        async with client_of(bench) as client:
            batch = await client.submit_calls(calls(1, 2), turn_id="t")
            first, second = bench.scene.take(), bench.scene.take()
            events = batch.events(20)
            bench.scene.run(progress(bench.scene.space, second, None, "on its way"))
            async for event in events:
                if event.marks.get("progress"):
                    break
            assert event.position == 1
            bench.scene.settle(second, "two")
            arriving = batch.as_completed(20)
            assert (await anext(arriving)).value == "two"
            bench.scene.settle(first, "one")
            assert (await anext(arriving)).value == "one"

    run(main)


def test_a_cancelled_wait_leaves_the_call_running_and_the_client_usable(bench: Bench) -> None:
    async def main() -> None:
        async with client_of(bench) as client:
            batch = await client.submit_calls(calls(1), turn_id="t")
            waiting = asyncio.create_task(batch.wait())
            await until(lambda: subscribed(bench))
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert waiting.cancelled()
            await until(lambda: not subscribed(bench))
            await asyncio.to_thread(bench.run_next, "went on")
            assert (await batch.wait(5))[0].value == "went on"

    run(main)


def test_a_cancelled_operation_never_leaves_its_reply_to_the_next(
    own_server: RealServer, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_client, "CONNECTIONS", 1)
    bench = Bench(own_server.url, namespace, PAY)

    async def main(proxy: FaultProxy) -> None:
        async with AsyncClient(proxy.url, scope="tenant-1/talk-1", namespace=namespace) as client:
            batches = [await client.submit_calls(calls(n), turn_id=f"t{n}") for n in range(2)]
            own_server.pause()
            before = proxy.round_trips
            asking = asyncio.create_task(batches[0].refresh())
            await until(lambda: proxy.round_trips > before)  # it is with the server, which does not answer
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            next_one = asyncio.create_task(client.batch("t1"))
            await asyncio.sleep(0)
            own_server.resume()
            assert [outcome.key for outcome in (await next_one).outcomes] == [batches[1].outcomes[0].key]

    with FaultProxy(own_server.socket) as proxy:
        run(lambda: main(proxy))
    bench.close()


def test_two_thousand_waits_need_one_subscription_and_few_connections(namespace: str) -> None:
    with RealServer(appendonly="no") as server:  # no claim about durability here, and thousands of writes
        bench = Bench(server.url, namespace, PAY)
        lines, grown_kib = run(lambda: two_thousand_waits(bench))
        bench.close()

    assert lines <= CONNECTIONS + 12  # the subscription and what the bench itself holds open
    assert grown_kib < WAITS * 20


async def two_thousand_waits(bench: Bench) -> tuple[int, int]:
    """How many connections the server sees, and by how many KiB the process grew for the waits."""
    async with client_of(bench) as client:
        await asyncio.gather(*(client.submit_calls(calls(n), turn_id=f"t{n}") for n in range(TURNS)))
        batches = await asyncio.gather(*(client.batch(f"t{n % TURNS}") for n in range(WAITS)))
        before = peak_kib()
        waits = [asyncio.create_task(batch.wait(100)) for batch in batches]
        await until(lambda: subscribed(bench) == TURNS)
        lines = bench.store.redis.client_list()
        assert [line["sub"] for line in lines if line["sub"] != "0"] == [str(TURNS)]
        await asyncio.to_thread(bench.run_all, ["done"] * TURNS)
        values = [outcome.value for outcomes in await asyncio.gather(*waits) for outcome in outcomes]
        assert values == ["done"] * WAITS
        await until(lambda: not subscribed(bench))
        return len(lines), peak_kib() - before


def peak_kib() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 1024 if sys.platform == "darwin" else peak


def test_who_waits_without_a_limit_is_told_when_redis_is_gone(own_server: RealServer, namespace: str) -> None:
    bench = Bench(own_server.url, namespace, PAY)

    async def main() -> None:
        impatient = AsyncConnection(bench.url, namespace=namespace, patience=Patience(0.5, 0.5))
        async with AsyncClient(impatient, scope="tenant-1/talk-1") as client:
            batch = await client.submit_calls(calls(1), turn_id="t")
            waiting = asyncio.create_task(batch.wait())
            await until(lambda: subscribed(bench))
            await asyncio.to_thread(own_server.kill9)
            with pytest.raises(StoreUnavailable):
                await asyncio.wait_for(waiting, 30)
            assert batch.any_pending
        await impatient.close()

    run(main)
    bench.close()


def test_async_waits_go_on_over_a_restart_of_redis(own_server: RealServer, namespace: str) -> None:
    bench = Bench(own_server.url, namespace, PAY)

    async def main() -> None:
        async with client_of(bench) as client:
            batch = await client.submit_calls(calls(1), turn_id="t")
            waiting = asyncio.create_task(batch.wait(30))
            await until(lambda: subscribed(bench))
            await asyncio.to_thread(own_server.restart)
            await asyncio.to_thread(bench.run_next, "after")
            assert (await waiting)[0].value == "after"

    run(main)
    bench.close()
