"""Workers for tests: as processes of their own, and calls for them to run."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.processes.processes import Child
from tests.support.processes.tools_under_test import VARIABLE, EffectsFile, tools
from tests.support.wait import PATIENCE_SECONDS, wait_until
from toolonce.store.connections.connection import Connection
from toolonce.store.crashpoints import VARIABLE as CRASH_VARIABLE
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.outcomes import Outcome
from toolonce.store.model.states import State
from toolonce.store.operations import queries
from toolonce.store.operations.queries import Record, Stats
from toolonce.store.operations.tools import publish
from toolonce.stream.harness.client import Client
from toolonce.stream.turns.turn import ToolCall
from toolonce.worker import Registry
from toolonce.worker.runtime.process import Options, Process
from toolonce.worker.runtime.signals import Signals

TOOLS = "tests.support.processes.tools_under_test:tools"
LEASE_MS = 1_000
_turns = itertools.count(1)


class Site:
    """A server, a namespace, a ledger; harnesses submit and workers work."""

    def __init__(self, url: str, namespace: str, folder: Path) -> None:
        self.url = url
        self.namespace = namespace
        self.ledger = EffectsFile(folder / "ledger")
        self.connection = Connection(url, namespace=namespace)
        self.client = Client(url, scope="tenant-1/talk-1", namespace=namespace)
        self.publish(tools)

    def close(self) -> None:
        self.client.close()
        self.connection.close()

    def publish(self, registry: Registry) -> None:
        self.connection.run(publish(self.connection.space, registry.specs()))

    def submit(self, tool: str, *, turn_id: str = "", **arguments: Any) -> str:
        """Submit one call of its own turn; its key."""
        return self.submit_all([(tool, arguments)], turn_id=turn_id)[0]

    def submit_all(self, calls: list[tuple[str, dict[str, Any]]], *, turn_id: str = "", **more: Any) -> list[str]:
        """Submit the calls of one turn; their keys."""
        return [outcome.key for outcome in self.submit_outcomes(calls, turn_id=turn_id, **more)]

    def submit_outcomes(
        self, calls: list[tuple[str, dict[str, Any]]], *, turn_id: str = "", **more: Any
    ) -> tuple[Outcome, ...]:
        """The same, with what is answered at once."""
        asked = [ToolCall(name, given, f"call_{n}", "function", n) for n, (name, given) in enumerate(calls)]
        return self.client.submit_calls(asked, turn_id=turn_id or f"turn-{next(_turns)}", **more).outcomes

    def record(self, key: str) -> Record:
        found = self.connection.run(queries.record(self.connection.space, key))
        assert found, f"call {key} is stored"
        return found

    def state(self, key: str) -> State:
        return self.record(key).state

    def wait_for(self, key: str, *states: State, timeout: float = PATIENCE_SECONDS) -> Record:
        wait_until(lambda: self.state(key) in states, timeout, f"{key} becomes {states}; it is {self.state(key)}")
        return self.record(key)

    def outcome(self, turn_id: str) -> Outcome:
        return self.client.batch(turn_id).outcomes[0]

    def stats(self) -> Stats:
        return self.connection.run(queries.stats(self.connection.space))

    def at_rest(self) -> bool:
        """Nothing is queued or running, and the ledger of G2 is balanced."""
        stats = self.stats()
        moving = sum(stats.counts.get(f"state:{state}", 0) for state in (State.QUEUED, State.RUNNING))
        return moving == 0 and stats.balanced

    @contextmanager
    def worker(
        self,
        *,
        crash: str = "",
        slots: int = 4,
        lease_ms: int = LEASE_MS,
        url: str = "",
        tools: str = TOOLS,
        more: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
    ) -> Iterator[Child]:
        """A worker process that has started to work, or will, where it is to crash."""
        environment = {VARIABLE: str(self.ledger.path), CRASH_VARIABLE: crash, **(env or {})}
        command = [
            "-m", "toolonce.ops", "work", "--tools", tools, "--redis", url or self.url, "--namespace", self.namespace,
            "--concurrency", str(slots), "--lease", f"{lease_ms}ms", *more,
        ]  # fmt: skip
        with Child.python(*command, env=environment) as child:
            if not crash:  # it may die before it says so
                child.wait_for_line("serves")
            yield child

    @contextmanager
    def worker_here(self, registry: Registry, **options: Any) -> Iterator[Process]:
        """A worker in threads of this process, for tools that a test defines; none of them needs a process."""
        self.publish(registry)
        given = Options(**{"concurrency": 4, "lease_ms": LEASE_MS, "grace_s": 5.0, **options})
        process = Process(self.connection, registry, given, keyring=Keyring.from_environment())
        signals = Signals()
        thread = threading.Thread(target=process.live, args=(signals,))
        thread.start()
        try:
            yield process
        finally:
            signals.ask()
            thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), "the worker ends when it is told to"
