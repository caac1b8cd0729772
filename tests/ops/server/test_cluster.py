"""A server in cluster mode is called so, by whoever meets it, and nothing is stored there (faults 23)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.store.model.errors import StoreUnsafe
from toolonce.stream import AsyncClient, Client, ToolCall

NODES = "{0} 127.0.0.1:0@0 myself,master - 0 0 1 connected {1}\n{2}vars currentEpoch 2 lastVoteEpoch 0\n"
KINDS = {
    "no slots": ("", ""),
    "all slots": ("0-16383", ""),
    "other slots": ("0-1", f"{'b' * 40} 127.0.0.1:7@17 master - 0 0 2 connected 2-16383\n"),
}
"""Which slots the node serves, and the line of the node that serves the others."""


@pytest.fixture(scope="module", params=KINDS)
def node(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    mine, others = KINDS[request.param]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    server = RealServer(cluster_enabled="yes", cluster_port=port, bind="127.0.0.1", cluster_node_timeout="600000")
    (server.folder / "nodes.conf").write_text(NODES.format("a" * 40, mine, others))
    with server, server.client() as client:
        if mine:
            wait_until(
                lambda: "'cluster_state': 'ok'" in str(client.cluster("INFO")), description="it serves its slots"
            )
        yield server


@pytest.mark.parametrize(
    "command",
    ["stats", "calls", "call abc", "doctor", "workers", "tail", "aborted", "recover", "wait --scope s t"],
)
def test_each_command_names_the_cluster_and_exits_with_4(
    node: RealServer, toolonce: CommandLine, namespace: str, command: str
) -> None:
    said = toolonce(*command.split(), place=["--redis", node.url, "--namespace", namespace])

    assert said.code == 4
    assert "this is a Redis Cluster node; toolonce needs one primary" in " ".join((said.out + said.err).split())


def test_a_client_names_the_cluster_before_anything_is_stored(node: RealServer, namespace: str) -> None:
    call = ToolCall("pay", {}, "c1", "function", 0)

    async def submit() -> None:
        async with AsyncClient(node.url, scope="s", namespace=namespace) as client:
            await client.submit_calls([call], turn_id="t")

    with (
        Client(node.url, scope="s", namespace=namespace) as client,
        pytest.raises(StoreUnsafe, match="Redis Cluster node"),
    ):
        client.submit_calls([call], turn_id="t")
    with pytest.raises(StoreUnsafe, match="Redis Cluster node"):
        asyncio.run(submit())
