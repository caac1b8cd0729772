"""Random histories against a plain model: submissions, workers, thieves, operators, sweeps, a moving clock, losses.

The model knows the state table and the guarantees, not the scripts. After each step: every move that the store
noted is a row of the table; what was settled stands; a mutating call was entered once unless someone gave leave;
nothing leads out of unknown by itself; and the audit finds no contradiction. At the end everything comes to rest.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from tests.support.servers.redis_server import RealServer
from tests.support.store.audit import audit
from tests.support.store.clocked_store import ClockedStore
from tests.support.store.scene import BROKEN, GRACE_MS, LEASE_MS, Scene, spec
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.outcomes import Failure
from toolonce.store.model.rates import Rate
from toolonce.store.model.record import RecordFields
from toolonce.store.model.states import OPEN, TABLE, Operation, State, targets
from toolonce.store.operations import operators, recovery
from toolonce.store.operations import runs as execution
from toolonce.store.operations.controls import limit, pause, rate, resume
from toolonce.store.operations.operation import Invocation
from toolonce.store.operations.runs import Run

T = TypeVar("T")
MOVES = {(row.source, row.operation, row.target) for row in TABLE}
NOTES = {"evidence", "repush", "begin", "late_approve", "late_deny"}
TOOLS = {
    "look": spec("look", "read", max_attempts=3, deadline_ms=10 * LEASE_MS),
    "put": spec("put", "idempotent", max_attempts=2, deadline_ms=20 * LEASE_MS),
    "pay": spec("pay", deadline_ms=20 * LEASE_MS),
    "wire": spec("wire", begins=True, deadline_ms=20 * LEASE_MS),
}
ONCE = {
    "bill": spec("bill", unique_by=("order",), deadline_ms=20 * LEASE_MS),
    "mark": spec("mark", "idempotent", unique_by=("order",), unique_for_ms=LEASE_MS, deadline_ms=20 * LEASE_MS),
    "ship": spec("ship", hold_duplicates=True, approval_ms=50 * LEASE_MS, deadline_ms=20 * LEASE_MS),
}
NO_EFFECT = Failure("no_account", "no such account", effect="none")
OLD, NEW = "the old key of all", "the new key of all"
KEYRINGS = [Keyring.parse(f"{OLD},{NEW}"), Keyring.parse(f"{NEW},{OLD}")]


class StoreMachine(RuleBasedStateMachine):
    """One store, seen by everybody at once."""

    calls = Bundle("calls")
    runs = Bundle("runs")

    def __init__(self, server: RealServer) -> None:
        super().__init__()
        store = ClockedStore.real(server.url, f"machine-{uuid4().hex[:12]}")
        self.scene = Scene(store, audited=False)
        self.space = store.space
        self.states: dict[str, State] = {}
        self.seen_events: dict[str, int] = defaultdict(int)
        self.outcomes: dict[str, tuple[str | None, ...]] = {}
        self.entered: dict[str, Run] = {}
        self.excused: set[str] = set()
        self.spoken: set[str] = set()
        self.submitted = self.wishes = 0
        self.follows: dict[str, str] = {}
        self.followed: set[str] = set()
        self.paused: set[str] = set()
        self.rates: dict[str, Rate | None] = {}
        self.starts: dict[str, list[int]] = defaultdict(list)

    def teardown(self) -> None:
        self.come_to_rest()
        self.scene.store.close()

    # What may happen.

    @initialize(cap=st.none() | st.integers(1, 2), most=st.sampled_from([None, None, "100/s"]))
    def cap(self, cap: int | None, most: str | None) -> None:
        for tool in ("tool:pay", "tool:look"):
            self.send(limit(self.space, tool, cap, self.scene.word()))
            self.change_a_rate(tool, most)

    @rule(of=st.sampled_from(["tool:pay", "tool:look", "tenant:*"]), cap=st.none() | st.integers(1, 3))
    def change_a_limit(self, of: str, cap: int | None) -> None:
        self.scene.limit(of, cap)

    @rule(tool=st.sampled_from(["tool:pay", "tool:look"]), most=st.sampled_from([None, "100/s", "600/min"]))
    def change_a_rate(self, tool: str, most: str | None) -> None:
        self.rates[tool] = Rate.parse(most) if most else None
        self.starts[tool] = []
        self.send(rate(self.space, tool, self.rates[tool], self.scene.word()))

    @rule(
        target=calls, tool=st.sampled_from(sorted(TOOLS)), lane=st.sampled_from(["", "", "lane"]), held=st.booleans(),
        tenant=st.sampled_from(["", "acme", "umbrella"]),
    )  # fmt: skip
    def submit(self, tool: str, lane: str, held: bool, tenant: str) -> str:
        self.submitted += 1
        more: dict[str, Any] = {"lanes": (lane,) if lane else (), "held": "approval" if held and tool == "pay" else ""}
        return self.scene.submit(f"call-{self.submitted}", of=TOOLS[tool], tenant=tenant, **more)

    @rule(target=calls, first=calls)
    def submit_follower(self, first: str) -> str:
        self.submitted += 1
        follower = self.scene.submit(f"call-{self.submitted}", of=TOOLS["pay"], predecessors=(first,))
        self.follows[follower] = first
        return follower

    @rule(
        target=calls, tool=st.sampled_from(sorted(ONCE)), order=st.integers(1, 2), cents=st.integers(5, 6),
        held=st.booleans(), keyring=st.sampled_from(KEYRINGS),
    )  # fmt: skip
    def submit_once(self, tool: str, order: int, cents: int, held: bool, keyring: Keyring) -> str:
        self.submitted += 1
        arguments, why = {"order": order, "cents": cents}, "approval" if held else ""
        return self.scene.submit(f"call-{self.submitted}", arguments, of=ONCE[tool], held=why, keyring=keyring)

    @rule(run=runs, again=st.booleans())
    def fail_without_effect(self, run: Run | None, again: bool) -> None:
        if run is not None:
            failure = NO_EFFECT if not run.ran_before else BROKEN
            self.send(execution.settle(self.space, run, execution.Ending(State.FAILED, failure=failure)), again)

    @rule(target=runs, at=st.integers(0, 3), again=st.booleans())
    def take(self, at: int, again: bool) -> Any:
        jobs = self.scene.queued_jobs()
        if not jobs:
            return None
        job = jobs[min(at, len(jobs) - 1)]
        self.scene.store.redis.lrem(self.space.queue_key("default"), 1, job)
        return self.claim(job, again)

    @rule(target=runs, call=calls)
    def redeliver(self, call: str) -> Any:
        return self.claim(self.scene.record(call).idempotency_key, False)

    @rule(target=runs, run=runs, state=st.sampled_from(State), goes_on=st.booleans(), again=st.booleans())
    def settle(self, run: Run | None, state: State, goes_on: bool, again: bool) -> Any:
        """Under load the next call comes with the end of the one before."""
        if run is None:
            return None
        self.every_move_is_a_row_of_the_table()  # what gave leave since the last look
        ending = execution.Ending(state, f'"{run.fence}"' if state is State.SUCCEEDED else "", BROKEN)
        self.starts[f"tool:{run.tool}"] *= state is not State.REFUSED
        self.wishes += 1
        wish = execution.NextClaim("default", f"wish-{self.wishes}", f"slot-{self.wishes}", LEASE_MS)
        answer = self.send(execution.settle(self.space, run, ending, wish=wish if goes_on else None), again)
        return answer.next and self.start(answer.next)

    @rule(run=runs, how=st.sampled_from(["release", "retry_later", "interrupt"]), again=st.booleans())
    def give_up(self, run: Run | None, how: str, again: bool) -> None:
        if run is None:
            return
        held = self.is_held(run)
        if how in ("release", "retry_later") and held:
            self.excused.add(run.call)
        if how == "release":
            self.starts[f"tool:{run.tool}"] = []  # what was not entered returns its start
            self.send(execution.release(self.space, run), again)
        elif how == "retry_later":
            self.send(execution.retry_later(self.space, run, delay_ms=LEASE_MS, failure=BROKEN), again)
        else:
            self.send(execution.interrupt(self.space, run, reason="drain"), again)

    @rule(run=runs, again=st.booleans())
    def begin(self, run: Run | None, again: bool) -> None:
        if run is not None:
            self.send(execution.begin(self.space, run), again)

    @rule(run=runs)
    def renew(self, run: Run | None) -> None:
        if run is not None:
            held = self.is_held(run)
            (answer,) = self.send(execution.renew(self.space, [run], lease_ms=LEASE_MS))
            assert (answer != "lost") == held

    @rule(
        call=calls, what=st.sampled_from(["cancel", "retry", "resolve", "fail", "approve", "deny"]), again=st.booleans()
    )
    def say(self, call: str, what: str, again: bool) -> None:
        seen, word = self.scene.seen(call), self.scene.word()
        ikey = self.scene.record(call).idempotency_key
        invocation = {
            "cancel": operators.cancel(self.space, seen, word),
            "retry": operators.retry(self.space, seen, word),
            "resolve": operators.resolve(self.space, seen, '"operator"', word),
            "fail": operators.resolve(self.space, seen, BROKEN, word),
            "approve": operators.approve(self.space, call, ikey, word),
            "deny": operators.deny(self.space, call, ikey, word),
        }[what]
        done = self.send(invocation, again)
        if what == "retry" and not done.refused:
            self.excused.add(call)
            self.spoken.add(call)

    @rule(
        what=st.sampled_from(["tool:pay", "tool:look", "tenant:acme", "queue:default"]),
        ends=st.booleans(), again=st.booleans(),
    )  # fmt: skip
    def pause(self, what: str, ends: bool, again: bool) -> None:
        self.send((resume if ends else pause)(self.space, what, self.scene.word()), again)
        (self.paused.discard if ends else self.paused.add)(what)

    @rule(call=calls, again=st.booleans())
    def purge(self, call: str, again: bool) -> None:
        if self.send(recovery.purge(self.space, [call]), again) == ("forgotten",):
            self.spoken.add(call)  # its result is kept no longer

    @rule(ms=st.sampled_from([1, LEASE_MS // 2, LEASE_MS + 1, 6 * LEASE_MS]))
    def time_passes(self, ms: int) -> None:
        self.scene.store.advance(ms)

    @rule()
    def sweep(self) -> None:
        for step in recovery.steps(self.space, ["default"], "sweeper", grace_ms=GRACE_MS):
            self.send(step)

    @rule()
    def lose_pointers(self) -> None:
        self.scene.store.redis.delete(self.space.queue_key("default"))

    @rule(job=consumes(calls))
    def forget_about(self, job: str) -> None:
        """The harness no longer asks; the call goes on all the same."""

    # What must be true.

    @invariant()
    def the_store_does_not_contradict_itself(self) -> None:
        audit(self.scene.store)

    @invariant()
    def every_move_is_a_row_of_the_table(self) -> None:
        for call in self.known():
            record = self.scene.record(call)
            for event in record.history[self.seen_events[call] :]:
                self.follow(call, event)
            self.seen_events[call] = len(record.history)
            assert self.states[call] is record.state, "the state changed and no event says how"

    @invariant()
    def what_is_settled_stands(self) -> None:
        for call in self.known():
            stored = self.scene.record(call).fields.values
            outcome = tuple(stored.get(name) for name in ("state", "result", "error", "fence", "settled_by"))
            before = self.outcomes.get(call)
            if before and call not in self.spoken:
                assert outcome == before
            self.spoken.discard(call)
            self.outcomes.pop(call, None)
            if self.states[call].is_settled:
                self.outcomes[call] = outcome

    @invariant()
    def a_unique_key_lets_one_call_run_at_a_time(self) -> None:
        """And none beside one that may have had its effect."""
        active: dict[str, list[str]] = defaultdict(list)
        for call in self.known():
            record = self.scene.record(call)
            if record.fields.unique_by and record.state in (State.QUEUED, State.RUNNING, State.UNKNOWN):
                active[f"{record.fields.tool} {json.loads(record.fields.args)['order']}"].append(call)
        assert all(len(calls) == 1 for calls in active.values()), active

    @invariant()
    def who_follows_has_the_answer_of_the_first(self) -> None:
        for call in self.known():
            mine = self.scene.record(call).fields
            if not mine.follows or mine.state not in (State.SUCCEEDED, State.FAILED):
                continue
            first = self.scene.record(mine.follows)
            is_forgotten = mine.forgotten or first.fields.forgotten
            if first.fields.settled_by and call not in self.followed and not is_forgotten:
                self.followed.add(call)
                assert (mine.result, mine.attempt) == (first.fields.result, 0)
                assert mine.state in (first.state, State.FAILED)

    # How.

    def send(self, invocation: Invocation[T], again: bool = False) -> T:
        out = self.scene.run(invocation)
        if again:
            assert self.scene.run(invocation) == out, "sent twice, answered otherwise"
        return out

    def claim(self, job: str, again: bool) -> Run | None:
        self.every_move_is_a_row_of_the_table()  # what gave leave since the last look
        delivery = self.scene.delivery(job)
        run = self.send(execution.claim(self.space, delivery, lease_ms=LEASE_MS), again)
        return self.start(run) if isinstance(run, Run) else None

    def start(self, run: Run) -> Run:
        """Somebody has claimed a call, and enters its handler."""
        assert not self.is_paused(self.scene.record(run.call).fields), "it was claimed while it was paused"
        if run.effect == "mutating" and run.call in self.entered:
            assert run.call in self.excused, "a mutating call was entered twice, and nobody gave leave"
        self.entered[run.call] = run
        self.excused.discard(run.call)
        self.check_rate(f"tool:{run.tool}")
        return run

    def check_rate(self, tool: str) -> None:
        """A call has started: not sooner after each of those before it than the rate of its tool lets it."""
        most, starts = self.rates.get(tool), self.starts[tool]
        starts.append(self.scene.store.now)
        for behind, before in enumerate(reversed(starts if most else [])):
            least = behind * 1005 / most.per_second - max(most.period_ms / 200, 50) if most else 0
            assert starts[-1] - before >= least - 0.001, f"{tool} started too often: {starts}"

    def is_paused(self, record: RecordFields) -> bool:
        return bool({f"tool:{record.tool}", f"tenant:{record.tenant}", f"queue:{record.queue}"} & self.paused)

    def is_held(self, run: Run) -> bool:
        record = self.scene.record(run.call)
        return record.state is State.RUNNING and record.fence == run.fence

    def known(self) -> list[str]:
        root = f"{self.space.root}call:"
        return [key.removeprefix(root) for key in self.scene.store.redis.scan_iter(f"{root}*", count=1000)]

    def follow(self, call: str, event: dict[str, Any]) -> None:
        if event.get("to") is None or event["op"] in NOTES:
            return
        source, target = event.get("from"), State(event["to"])
        assert (source and State(source), Operation(event["op"]), target) in MOVES, event
        assert self.states.get(call) == source, f"{call} is {self.states.get(call)}: {event}"
        self.states[call] = target
        record = self.scene.record(call).fields
        if event["op"] == "expire" and source == State.QUEUED:
            assert not self.is_paused(record), "it expired while it was paused"
        if event["op"] == "lose" and target is State.QUEUED and record.begins:
            assert not record.begun, "it had begun"
            self.excused.add(call)

    def come_to_rest(self) -> None:
        """Everybody works as they should from here on."""
        for target in sorted(self.paused):
            self.pause(target, True, False)
        for _ in range(60):
            self.sweep()
            for call in self.known():
                for _ in range(2 * self.asks_a_person(call)):  # there are two questions at most
                    self.say(call, "approve", False)
            while (job := self.scene.pop()) is not None:
                if (run := self.claim(job, False)) is not None:
                    self.send(execution.settle(self.space, run, execution.Ending(State.SUCCEEDED, '"end"')))
            if not {State.QUEUED, State.RUNNING} & {self.scene.state(call) for call in self.known()}:
                break
            self.scene.store.advance(LEASE_MS)
        self.every_move_is_a_row_of_the_table()
        audit(self.scene.store)
        stuck = {call for call, state in self.states.items() if state in OPEN and state is not State.UNKNOWN}
        for call in stuck:
            record = self.scene.record(call)
            if record.fields.follows:
                assert record.state is State.HELD
                assert self.states[record.fields.follows] is State.UNKNOWN
                continue
            assert (record.state, record.fields.reason) == (State.HELD, "order"), record
            ahead = self.follows.get(call)
            waits = any(map(self.stands_behind_unknown, record.fields.lanes)) if ahead is None else ahead in stuck
            assert waits or (ahead is not None and self.states[ahead] is State.UNKNOWN)

    def asks_a_person(self, call: str) -> bool:
        record = self.scene.record(call)
        is_question = record.fields.reason in ("approval", "duplicate") and not record.fields.follows
        return record.state is State.HELD and is_question

    def stands_behind_unknown(self, lane: str) -> bool:
        """A lane stops at an unknown call until somebody says what became of it."""
        first = self.scene.store.redis.zrange(f"{self.space.root}lane:{lane}", 0, 0)[0]
        return self.states[first] is State.UNKNOWN


@pytest.mark.timeout(600)
def test_no_history_leads_the_store_astray(redis_server: RealServer) -> None:
    run_machine(
        partial(StoreMachine, redis_server),  # type: ignore[arg-type]  # called without arguments, like the class
        settings=settings(
            max_examples=settings().max_examples // 8,
            stateful_step_count=40,
            # A failing history is shown as it was found: making it shorter takes many minutes on a real server.
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_the_model_knows_an_operation_for_every_row() -> None:
    assert all(targets(row.source, row.operation) for row in TABLE)
