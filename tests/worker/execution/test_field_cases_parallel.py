"""Faults that others met with parallel calls (group 6), one test for the class of each."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.support.processes.workers import Site
from tests.support.wait import PATIENCE_SECONDS, wait_until
from toolonce.store.model.states import State
from toolonce.stream.turns.turn import ToolCall
from toolonce.worker import NotStarted, Registry


def test_calls_on_one_resource_run_one_after_the_other_in_call_order_across_workers(site: Site) -> None:
    """O6-01: two edits read, change and write the whole thing; both changes must be there, whatever the spelling."""
    registry, document, inside = Registry(), ["", ""], threading.Lock()

    @registry.tool(order_by="path:casefold", effect="mutating")
    def edit(path: str, line: int, text: str) -> bool:
        alone = inside.acquire(blocking=False)
        seen = list(document)
        threading.Event().wait(0.03)
        seen[line] = text
        document[:] = seen
        inside.release()
        return alone

    with site.worker_here(registry), site.worker_here(registry):
        keys = site.submit_all(
            [
                ("edit", {"path": "Doc-1", "line": 0, "text": "first"}),
                ("edit", {"path": "doc-1", "line": 1, "text": "second"}),
                ("edit", {"path": "DOC-1", "line": 1, "text": "third"}),
            ]
        )
        results = [site.wait_for(key, State.SUCCEEDED).fields.result for key in keys]

    assert results == ["true"] * 3
    assert document == ["first", "third"]


def test_a_call_that_needs_an_earlier_one_of_its_turn_sees_its_effect(site: Site) -> None:
    """O6-02: in an ordered batch, and where the tool itself says what it comes after."""
    registry, stored = Registry(), []

    @registry.tool
    def put(value: int) -> None:
        threading.Event().wait(0.05)
        stored.append(value)

    @registry.tool(effect="read")
    def listing() -> list[int]:
        return list(stored)

    @registry.tool(name="listing_after", effect="read", after="put")
    def after() -> list[int]:
        return list(stored)

    with site.worker_here(registry), site.worker_here(registry):
        for number in range(5):
            ordered = site.submit_all([("put", {"value": number}), ("listing", {})], ordered=True)
            assert str(number) in site.wait_for(ordered[1], State.SUCCEEDED).fields.result
            declared = site.submit_all([("put", {"value": 10 + number}), ("listing_after", {})])
            assert str(10 + number) in site.wait_for(declared[1], State.SUCCEEDED).fields.result


def test_a_predecessor_that_fails_refuses_what_was_to_follow_and_says_so(site: Site) -> None:
    registry, entered = Registry(), []

    @registry.tool(effect="read", retry=1)
    def first() -> None:
        raise RuntimeError

    @registry.tool(after="first")
    def second() -> None:
        entered.append("second")

    with site.worker_here(registry):
        keys = site.submit_all([("first", {}), ("second", {})])
        record = site.wait_for(keys[1], State.REFUSED)

    assert record.failure
    assert record.failure.code == "predecessor"
    assert entered == []


def test_a_downstream_that_allows_five_gets_five_and_the_rest_wait_as_told(site: Site) -> None:
    """O6-04: here the tool has no limit of its own; the sixth is refused downstream and counts as not started."""
    registry, done = Registry(), []
    inside, lock = [0, 0], threading.Lock()

    @registry.tool(retry=10_000)
    def limited(n: int) -> None:
        with lock:
            if inside[0] >= 5:
                raise NotStarted("rate limit", retry_after=0.02)
            inside[0] += 1
            inside[1] = max(inside)
        threading.Event().wait(0.005)
        with lock:
            inside[0] -= 1
            done.append(n)

    with site.worker_here(registry, concurrency=16):
        keys = site.submit_all([("limited", {"n": n}) for n in range(20)])
        for key in keys:
            site.wait_for(key, State.SUCCEEDED)

    assert sorted(done) == list(range(20))
    assert inside[1] <= 5


def test_the_same_action_asked_for_again_runs_again(site: Site) -> None:
    """O6-06: build, fix, build; and an old refusal is not replayed after its cause is gone."""
    registry = Registry()
    built: list[int] = []
    fixed: list[bool] = []

    @registry.tool
    def build() -> str:
        from toolonce.worker import ToolError

        built.append(len(built))
        if not fixed:
            raise ToolError("does not compile")
        return "built"

    @registry.tool
    def fix() -> None:
        fixed.append(True)

    with site.worker_here(registry):
        site.wait_for(site.submit("build"), State.FAILED)
        site.wait_for(site.submit("fix"), State.SUCCEEDED)
        site.wait_for(site.submit("build"), State.SUCCEEDED)

    assert built == [0, 1]


def test_answers_come_in_call_order_whatever_ends_first(site: Site) -> None:
    registry, gates = Registry(), [threading.Event() for _ in range(3)]

    @registry.tool(effect="read")
    def behind(gate: int) -> int:
        gates[gate].wait(60)
        return gate

    with site.worker_here(registry):
        outcomes = site.submit_outcomes([("behind", {"gate": gate}) for gate in range(3)], turn_id="three")
        for gate in (2, 1, 0):
            gates[gate].set()
            site.wait_for(outcomes[gate].key, State.SUCCEEDED)

    assert [outcome.value for outcome in site.client.batch("three").outcomes] == [0, 1, 2]


def test_one_slow_tool_does_not_stop_the_others(site: Site) -> None:
    """G7."""
    registry, gate = Registry(), threading.Event()

    @registry.tool(effect="read", concurrency=2)
    def slow() -> None:
        gate.wait(60)

    @registry.tool(effect="read")
    def quick() -> None: ...

    with site.worker_here(registry, concurrency=3):
        slow_ones = [site.submit("slow") for _ in range(10)]
        for _ in range(5):
            site.wait_for(site.submit("quick"), State.SUCCEEDED)
        gate.set()
        for key in slow_ones:
            site.wait_for(key, State.SUCCEEDED)
        wait_until(site.at_rest, description="all is at rest")


def test_a_call_that_comes_after_another_waits_for_it_though_each_was_submitted_by_itself(
    site: Site, tmp_path: Path
) -> None:
    """Faults 9: as most frameworks do; the effects are counted in a file."""
    registry, ledger, gate = Registry(), tmp_path / "effects", threading.Event()
    ledger.touch()

    def write(line: str) -> None:
        with ledger.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    @registry.tool
    def reserve() -> None:
        gate.wait(PATIENCE_SECONDS)
        write("reserve")

    @registry.tool(after="reserve")
    def charge() -> None:
        write("charge")

    with site.worker_here(registry):
        asked = [ToolCall("reserve", {}, "r", "function", 0), ToolCall("charge", {}, "c", "function", 0)]
        for ordered in (False, True):
            turn_id = f"turn-{ordered}"
            for call in asked:
                site.client.submit_calls([call], turn_id=turn_id, ordered=ordered)
            assert site.client.batch(turn_id).outcomes[1].marks == {"reason": "order"}
        gate.set()
        wait_until(site.at_rest, description="all of them have run")

    assert sorted(ledger.read_text().split()) == ["charge"] * 2 + ["reserve"] * 2
    assert ledger.read_text().startswith("reserve")
