"""The place of one crash experiment: its own server, a faulty line to it, a ledger of effects, harness and workers.

Knows how to look whether everything has come to rest and whether anything is stuck. Knows no deaths.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from rq.registry import FailedJobRegistry, FinishedJobRegistry, StartedJobRegistry

from tests.support.crash.harness import SCOPE, TURN, two_calls
from tests.support.crash.ledger import CrashLedger
from tests.support.crash.process_starter import ProcessStarter, StartedProcess
from tests.support.crash.tools import VARIABLE, tools
from tests.support.servers.proxy import FaultProxy
from tests.support.servers.redis_server import RealServer
from tests.support.servers.rq_view import rq_queue
from tests.support.store.audit import audit
from tests.support.store.live_store import LiveStore
from toolonce.store.model.states import State
from toolonce.store.operations import operation, queries, recovery
from toolonce.store.operations.queries import Record, Stats
from toolonce.store.operations.tools import publish
from toolonce.stream.harness.client import Client

NAMESPACE = "crash"


class CrashSite:
    """Usable as a context manager; everything it started ends with the block."""

    def __init__(self, starter: ProcessStarter, folder: Path) -> None:
        self._starter = starter
        self._processes: list[StartedProcess] = []
        self.ledger = CrashLedger.create(folder / "ledger")
        self.server = RealServer().start()
        self.proxy = FaultProxy(self.server.socket)
        self.store = LiveStore(self.server.url, NAMESPACE)
        self.client = Client(self.server.url, scope=SCOPE, namespace=NAMESPACE)
        for name in operation.names():  # so that a lost reply is that of a script that ran, not of "no such script"
            self.store.redis.script_load(operation.load(name).text)
        self.store.run(publish(self.store.space, tools.specs()))

    def close(self) -> None:
        for process in self._processes:
            process.kill9()
        self.client.close()
        self.store.close()
        self.proxy.close()
        self.server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # -- who acts

    def submit(self, kind: str, arguments: dict[str, Any]) -> tuple[str, str]:
        """Submit the turn, for the first time or again; the keys of its two calls."""
        first, second = self.client.submit_calls(two_calls(kind, arguments), turn_id=TURN).outcomes
        return first.key, second.key

    def harness(self, kind: str, arguments: dict[str, Any], *, url: str = "", crash: str = "") -> StartedProcess:
        """A process that submits the turn."""
        return self._start("harness", url or self.server.url, NAMESPACE, kind, json.dumps(arguments), crash=crash)

    def worker(self, *more: str, lease_ms: int = 500, url: str = "", crash: str = "") -> StartedProcess:
        """A process that works, with one slot."""
        return self._start(
            "toolonce", "work", "--tools", "tests.support.crash.tools:tools", "--redis", url or self.server.url,
            "--namespace", NAMESPACE, "--lease", f"{lease_ms}ms", "--concurrency", "1", *more, crash=crash,
        )  # fmt: skip

    def _start(self, *words: str, crash: str) -> StartedProcess:
        process = self._starter.start(*words, env={VARIABLE: str(self.ledger.path)}, crash=crash)
        self._processes.append(process)
        return process

    # -- what is there

    def calls(self) -> tuple[str, ...]:
        """The keys of the turn's calls; () where none is stored."""
        return tuple(self.states())

    def states(self) -> dict[str, State]:
        """The state of each call of the turn, all of one moment."""
        stored = self.store.run(queries.turn(self.store.space, self.client.terms.turn(TURN).key))
        return {outcome.key: State(outcome.state) for outcome in stored if outcome.state}

    def record(self, key: str) -> Record:
        found = self.store.run(queries.record(self.store.space, key))
        assert found, f"call {key} is stored"
        return found

    def state(self, key: str) -> State:
        return self.record(key).state

    def stats(self) -> Stats:
        return self.store.run(queries.stats(self.store.space))

    def lease_has_run_out(self, key: str) -> bool:
        seconds, micros = self.store.redis.time()
        end = self.store.redis.zscore(f"{{{NAMESPACE}}}:leases", key)
        return end is not None and end < seconds * 1000 + micros // 1000

    def has_refused_for_memory(self) -> bool:
        return "errorstat_OOM" in self.store.redis.info("errorstats")

    def has_no_pointers(self) -> bool:
        queue = self.store.space.queue_key("default")
        return not self.store.redis.exists(queue, self.store.space.intermediate_key("default"))

    def what_is_stuck(self) -> list[str]:
        """Names of keys that must be gone once all has come to rest: leases, slots, pointers, those who wait."""
        root = self.store.space.root
        patterns = ("leases", "slots:*", "waiting:*", "saturated_*", "woken:*", "pushed:*", "delayed", "deadlines")
        own = [key for pattern in patterns for key in self.store.redis.scan_iter(f"{root}{pattern}", count=1000)]
        rqs = [key for kind in ("wip", "queue") for key in self.store.redis.scan_iter(f"{root}rq:{kind}:*")]
        return own + rqs

    def check_nothing_is_stuck(self, keys: Sequence[str]) -> None:
        """Raise AssertionError where a dead process has left something behind that holds others up."""
        self.store.run(recovery.repush(self.store.space, "default", grace_ms=0))  # what the dead have shown goes
        stuck = self.what_is_stuck()
        assert not stuck, f"left behind: {stuck}"
        stats = self.stats()
        assert stats.balanced, f"admitted = settled + open: {stats.counts}"
        assert stats.counts["admitted"] == len(keys), f"admitted: {stats.counts}"
        audit(self.store)  # type: ignore[arg-type]
        self._check_rqs_view(keys)

    def _check_rqs_view(self, keys: Sequence[str]) -> None:
        states = [self.state(key) for key in keys]
        failed = sum(state in (State.FAILED, State.UNKNOWN) for state in states)
        registries = (StartedJobRegistry, FailedJobRegistry, FinishedJobRegistry)
        with rq_queue(self.store.space, self.store.redis) as queue:
            counted = (queue.count, *(registry(queue=queue).count for registry in registries))
        # A worker that was killed has not shown the calls that it settled since its last heartbeat.
        queued, started, shown_failed, shown_finished = counted
        assert (queued, started) == (0, 0), f"queue, started: {counted}"
        assert shown_failed <= failed, f"failed: {counted}"
        assert shown_finished <= states.count(State.SUCCEEDED), f"finished: {counted}"
