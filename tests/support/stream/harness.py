"""A harness and a hand that does the workers' part: calls are submitted by clients and run when the test says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.store.live_store import LiveScene, LiveStore
from tests.support.store.scene import spec
from toolonce.store.model.specs import ToolSpec
from toolonce.store.operations.runs import Run
from toolonce.stream.harness.client import Client
from toolonce.stream.turns.turn import ToolCall

INTEGER = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
PAY = spec("pay", schema=INTEGER)
LOOK = spec("look", "read")


def call(tool: str = "pay", call_id: str | None = "a", position: int = 0, **arguments: Any) -> ToolCall:
    return ToolCall(tool, arguments, call_id, "function", position)


def calls(*numbers: int) -> list[ToolCall]:
    """Calls of ``pay``, one per number, with ids of their own."""
    return [call("pay", f"call_{place}", place, n=number) for place, number in enumerate(numbers)]


class Bench:
    """One namespace of a server with published tools; `client` talks to it as a harness."""

    def __init__(self, url: str, namespace: str, *specs: ToolSpec) -> None:
        self.url, self.namespace = url, namespace
        self.store = LiveStore(url, namespace)
        self.scene = LiveScene(self.store)
        self._clients: list[Client] = []
        if specs:
            self.scene.publish(*specs)
        self.client = self.another_client()

    def another_client(self, scope: str = "tenant-1/talk-1", *, url: str = "", **more: Any) -> Client:
        client = Client(url or self.url, scope=scope, namespace=self.namespace, **more)
        self._clients.append(client)
        return client

    def run_next(self, value: Any = "done") -> Run:
        """Take the next call as a worker does, and settle it with this value."""
        run = self.scene.take()
        self.scene.settle(run, value)
        return run

    def run_all(self, values: Sequence[Any]) -> list[str]:
        return [self.run_next(value).call for value in values]

    @property
    def admitted(self) -> int:
        return self.scene.stats().counts.get("admitted", 0)

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self.store.close()
