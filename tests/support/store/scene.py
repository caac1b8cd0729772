"""The store's verbs in short form, for tests: submit a call, take it from the queue, settle it, look at it.

Each step goes through the real scripts, and after each the whole store is audited.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from typing import Any, TypeVar

from tests.support.store.audit import audit
from tests.support.store.clocked_store import ClockedStore
from toolonce.store.model import identity
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.outcomes import Failure, Outcome
from toolonce.store.model.specs import Effect, ToolSpec
from toolonce.store.model.states import State
from toolonce.store.model.unique_keys import Owner, unique_keys
from toolonce.store.operations import admission, controls, operators, queries, recovery, runs
from toolonce.store.operations.admission import Identified, NewCall, Request, Turn
from toolonce.store.operations.operation import Operation
from toolonce.store.operations.operators import Actor, Expected
from toolonce.store.operations.runs import Delivery, Ending, NotRun, Run, SettleAnswer

T = TypeVar("T")

LEASE_MS = 10_000
GRACE_MS = 5_000
BROKEN = Failure("tool_error", "it broke")
_numbers = count(1)


def spec(tool: str = "pay", effect: Effect | str = Effect.MUTATING, **terms: Any) -> ToolSpec:
    return ToolSpec(tool, effect=Effect(effect), **terms)


class Scene:
    """A store with one scope. Calls are named by their call id in the turn `turn`."""

    def __init__(self, store: ClockedStore, *, audited: bool = True) -> None:
        self.store = store
        self.space = store.space
        self._audited = audited

    def run(self, operation: Operation[T]) -> T:
        out = self.store.run(operation)
        if self._audited:
            audit(self.store)
        return out

    def turn(self, turn_id: str = "turn", *, scope: str = "scope", tenant: str = "") -> Turn:
        return Turn(scope, turn_id, identity.turn_key(self.space.name, scope, turn_id), tenant)

    def call(self, call_id: str = "a", arguments: Any = None, *, of: ToolSpec | None = None, **more: Any) -> NewCall:
        """A call to be admitted; `more` is `turn_id`, `scope`, `tenant`, `keyring` and fields of NewCall."""
        of = of or spec()
        turn_id, scope = more.pop("turn_id", "turn"), more.pop("scope", "scope")
        arguments = {} if arguments is None else arguments
        key = identity.call_key(self.space.name, scope, turn_id, identity.reference(call_id, 1))
        keyring = more.pop("keyring", Keyring())
        known = Identified(key, keyring.fingerprints(of.name, arguments))
        owner = Owner(self.space.name, scope, more.pop("tenant", ""))
        more.setdefault("unique_keys", () if more.get("refusal") else unique_keys(of, owner, arguments, keyring))
        return NewCall(known, of.name, json.dumps(arguments), more.pop("position", 0), call_id, spec=of, **more)

    def admit(self, *calls: NewCall, turn: Turn | None = None, request: str = "", **more: Any) -> tuple[Outcome, ...]:
        """Admit calls in one step; `more` is fields of Request."""
        asked = Request(request or f"request-{next(_numbers)}", **more)
        admitted = self.run(admission.admit(self.space, turn or self.turn(), calls, request=asked))
        assert admitted is not None, "judged by specs that are not published any more"
        return admitted

    def submit(self, call_id: str = "a", arguments: Any = None, *, tenant: str = "", **more: Any) -> str:
        """Admit one call; its key."""
        turn = self.turn(more.get("turn_id", "turn"), scope=more.get("scope", "scope"), tenant=tenant)
        return self.admit(self.call(call_id, arguments, tenant=tenant, **more), turn=turn)[0].key

    def lookup(self, *calls: NewCall) -> tuple[Outcome | None, ...]:
        return self.run(admission.lookup(self.space, [call.identity for call in calls]))

    def pop(self, queue: str = "default") -> str | None:
        """Take the next pointer as a worker does; the job id."""
        redis = self.store.redis
        source, target = self.space.queue_key(queue), self.space.intermediate_key(queue)
        job: str | None = redis.lmove(source, target, "LEFT", "RIGHT")
        return job

    def delivery(self, job: str, *, queue: str = "default", worker: str = "worker-1", token: str = "") -> Delivery:
        return Delivery(job, queue, token or f"token-{next(_numbers)}", worker)

    def claim(self, job: str, *, seen: int = 0, lease_ms: int = LEASE_MS, **more: str) -> Run | NotRun:
        return self.run(runs.claim(self.space, self.delivery(job, **more), lease_ms=lease_ms, seen_fence=seen))

    def take(self, queue: str = "default", **more: Any) -> Run:
        """Pop and claim as a worker does, until a pointer gives a run."""
        while (job := self.pop(queue)) is not None:
            run = self.claim(job, queue=queue, **more)
            if isinstance(run, Run):
                return run
        raise AssertionError(f"no pointer in the queue {queue} gives a run")

    def start(self, call_id: str = "a", arguments: Any = None, **more: Any) -> Run:
        """Admit one call and take it."""
        self.submit(call_id, arguments, **more)
        return self.take(more["of"].queue if "of" in more else "default")

    def settle(self, run: Run, value: Any = None, *, state: State = State.SUCCEEDED) -> SettleAnswer:
        succeeded = state is State.SUCCEEDED
        return self.run(
            runs.settle(
                self.space, run, Ending(state, json.dumps(value) if succeeded else "", None if succeeded else BROKEN)
            )
        )

    def fail(self, run: Run) -> SettleAnswer:
        return self.settle(run, state=State.FAILED)

    def release(self, run: Run, held: str = "") -> str:
        return self.run(runs.release(self.space, run, held=held))

    def retry_later(self, run: Run, delay_ms: int = 1_000) -> str:
        return self.run(runs.retry_later(self.space, run, delay_ms=delay_ms, failure=BROKEN))

    def reclaim(self) -> dict[str, int]:
        return self.run(recovery.reclaim(self.space, "sweeper")).counts

    def lose(self, run: Run) -> State:
        """Let the lease of a run end and sweep; what the call has become."""
        self.store.advance(LEASE_MS + 1)
        self.reclaim()
        return self.state(run.call)

    def limit(self, target: str, most: int | None) -> None:
        """Set or clear a limit, and sweep: who waits for it goes on only then."""
        self.store.run(controls.limit(self.space, target, most, self.word()))
        self.tick()

    def pause(self, *targets: str) -> None:
        for target in targets:
            self.run(controls.pause(self.space, target, self.word()))

    def resume(self, *targets: str) -> None:
        """End these pauses, and sweep: parked calls come back only then."""
        for target in targets:
            self.run(controls.resume(self.space, target, self.word()))
        while self.tick()["woken"]:
            pass

    def tick(self) -> dict[str, int]:
        return self.run(recovery.tick(self.space))[0].counts

    def repush(self, queue: str = "default", **more: Any) -> dict[str, int]:
        return self.run(recovery.repush(self.space, queue, grace_ms=GRACE_MS, **more)).counts

    def word(self, reason: str = "because", *, request: str = "", actor: str = "alice") -> Actor:
        return Actor(actor, reason, request or f"request-{next(_numbers)}")

    def seen(self, call: str) -> Expected:
        """What an operator sees who looks now."""
        found = self.record(call)
        return Expected(call, found.state, found.fence)

    def retry(self, call: str) -> str:
        return self.run(operators.retry(self.space, self.seen(call), self.word())).verdict

    def cancel(self, call: str) -> str:
        return self.run(operators.cancel(self.space, Expected(call), self.word())).verdict

    def resolve(self, call: str, verdict: str | Failure = '"done"') -> str:
        return self.run(operators.resolve(self.space, self.seen(call), verdict, self.word())).verdict

    def approve(self, call: str) -> str:
        return self.run(operators.approve(self.space, call, self.record(call).idempotency_key, self.word())).verdict

    def deny(self, call: str) -> str:
        return self.run(operators.deny(self.space, call, self.record(call).idempotency_key, self.word())).verdict

    def record(self, call: str) -> queries.Record:
        found = self.store.run(queries.record(self.space, call))
        assert found is not None, f"no record of {call}"
        return found

    def state(self, call: str) -> State:
        return self.record(call).state

    def states(self, calls: Sequence[str]) -> list[State]:
        return [self.state(call) for call in calls]

    def stats(self, *queues: str) -> queries.Stats:
        return self.store.run(queries.stats(self.space, queues or ("default",)))

    def queued_jobs(self, queue: str = "default") -> list[str]:
        return list(self.store.redis.lrange(self.space.queue_key(queue), 0, -1))
