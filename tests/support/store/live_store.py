"""A store as the command line finds it: the real scripts on the server's own clock."""

from __future__ import annotations

from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.store.scene import Scene
from tests.support.wait import wait_until
from toolonce.store.connections.connection import Connection
from toolonce.store.model.outcomes import Failure
from toolonce.store.model.specs import ToolSpec
from toolonce.store.model.states import State
from toolonce.store.operations.operation import Operation
from toolonce.store.operations.recovery import reclaim
from toolonce.store.operations.runs import Ending, Run, settle
from toolonce.store.operations.tools import publish

T = TypeVar("T")


class LiveStore:
    """What `Scene` needs of a store, over an ordinary connection."""

    def __init__(self, url: str, namespace: str) -> None:
        self.connection = Connection(url, namespace=namespace)
        self.space = self.connection.space
        self.redis = redis.Redis.from_url(url, decode_responses=True, retry=Retry(NoBackoff(), 0))

    def run(self, operation: Operation[T]) -> T:
        return self.connection.run(operation)

    def close(self) -> None:
        self.redis.close()
        self.connection.close()


class LiveScene(Scene):
    """A scene on the server's clock: what needs time to pass waits for it."""

    def __init__(self, store: LiveStore) -> None:
        super().__init__(store, audited=False)  # type: ignore[arg-type]
        self.live = store

    def publish(self, *specs: ToolSpec) -> None:
        self.live.run(publish(self.space, list(specs)))

    def succeeded(self, call_id: str, value: Any = "done", **more: Any) -> str:
        run = self.start(call_id, **more)
        self.settle(run, value)
        return run.call

    def failed(self, call_id: str, message: str = "it broke", **more: Any) -> str:
        run = self.start(call_id, **more)
        ending = Ending(State.FAILED, failure=Failure("tool_error", message))
        self.live.run(settle(self.space, run, ending))
        return run.call

    def unknown(self, call_id: str, **more: Any) -> Run:
        """A call whose worker died: claimed for a moment, never settled, found by the sweep."""
        self.submit(call_id, **more)
        return self.lost(self.take(lease_ms=1))

    def lost(self, run: Run) -> Run:
        """The same run, once the sweep has found that its worker is gone."""

        def found() -> bool:
            self.live.run(reclaim(self.space, "sweeper"))
            return self.state(run.call) is State.UNKNOWN

        wait_until(found, description="the lease runs out")
        return run
