"""A client's `tools`: what workers have published, in the shape of a dialect's request."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.servers.redis_server import RealServer
from tests.support.store.scene import spec
from tests.support.stream.harness import LOOK, PAY, Bench
from toolonce.store import CorruptRecord, NoToolsPublished, StoreMisuse
from toolonce.stream import DIALECTS, AsyncClient, Dialect, ToolDefinitions, ToolNotOffered, UnknownDialect
from toolonce.stream.dialects.tools import offered


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_client_gives_the_published_tools_in_the_shape_of_the_request(bench: Bench, dialect: Dialect) -> None:
    found = bench.client.tools(dialect)

    assert isinstance(found, ToolDefinitions)
    assert found == offered([PAY, LOOK], dialect)
    assert found.unordered == ("pay",)


def test_the_newest_version_of_a_tool_is_given(bench: Bench) -> None:
    bench.scene.publish(spec("pay", version="2", description="Pay now."))

    assert [tool.get("description") for tool in bench.client.tools("anthropic")] == [None, "Pay now."]


def test_an_async_client_gives_the_same(bench: Bench) -> None:
    async def ask() -> ToolDefinitions:
        async with AsyncClient(bench.url, scope="s", namespace=bench.namespace) as client:
            return await client.tools("openai-responses", only=["pay"])

    assert asyncio.run(ask()) == bench.client.tools("openai-responses", only=["pay"])


def test_a_harness_may_offer_only_some_tools(bench: Bench) -> None:
    bench.scene.publish(spec("no.such.name"))

    assert bench.client.tools("anthropic", only=["look"]) == offered([LOOK], "anthropic")
    assert bench.client.tools("anthropic", only="look") == offered([LOOK], "anthropic")
    assert bench.client.tools("anthropic", only=[]) == []
    with pytest.raises(ToolNotOffered, match=r"tool no\.such\.name: its name is refused"):
        bench.client.tools("anthropic", only=["look", "no.such.name"])


def test_a_tool_that_nobody_has_published_is_told_with_those_that_are(bench: Bench) -> None:
    with pytest.raises(StoreMisuse, match=r"no worker has published pya in .*; published are look, pay"):
        bench.client.tools("anthropic", only=["pya", "look"])


def test_without_any_published_tool_the_message_says_how_to_start_a_worker(
    redis_server: RealServer, namespace: str
) -> None:
    bench = Bench(redis_server.url, namespace)
    try:
        with pytest.raises(NoToolsPublished, match="toolonce work --tools"):
            bench.client.tools("anthropic")
    finally:
        bench.close()


def test_an_unknown_dialect_is_refused_before_the_store_is_asked() -> None:
    from toolonce.stream import Client

    with Client("redis://127.0.0.1:1/0", scope="s") as client, pytest.raises(UnknownDialect):
        client.tools("openai")  # type: ignore[arg-type]


def test_what_another_team_publishes_keeps_no_harness_from_its_tools(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """faults 11: a sibling; only the tool that cannot be offered is left out, and that is told."""
    root, redis = bench.store.space.root, bench.store.redis
    redis.hset(f"{root}tools", "later\n1", '{"name": "later", "effect": "of a release to come"}')
    redis.hset(f"{root}newest", "later", "1")
    bench.scene.publish(spec("no.such.name"))

    found = bench.client.tools("anthropic")

    assert [tool["name"] for tool in found] == ["look", "pay"]
    assert {note.tool for note in found.notes if note.refused} == {"later", "no.such.name"}
    assert [record.getMessage().split()[1] for record in caplog.records] == ["no.such.name", "later"]
    with pytest.raises(CorruptRecord, match=r"tool later: .*upgrade toolonce"):
        bench.client.tools("anthropic", only=["pay", "later"])
