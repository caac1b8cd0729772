"""A slot goes from one call to the next without asking the queue: what that must not change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.worker import Registry
from toolonce.worker.execution.attempt import Attempt
from toolonce.worker.execution.run_session import RunSession
from toolonce.worker.runtime.process import Process
from toolonce.worker.runtime.queue_reader import _STAY

LONG = 200


def registry_of(effects: Path) -> Registry:
    """Two tools with a queue each, which write their names down."""
    tools = Registry()

    def write(name: str) -> str:
        with effects.open("a") as file:
            file.write(f"{name}\n")
        return name

    @tools.tool(queue="long")
    def often() -> str:
        return write("often")

    @tools.tool(queue="short")
    def seldom() -> str:
        return write("seldom")

    return tools


@pytest.mark.parametrize("queues", [("long", "short"), ("short", "long")])
def test_a_long_queue_keeps_no_other_one_waiting(site: Site, tmp_path: Path, queues: tuple[str, str]) -> None:
    """One slot; whichever of the queues it begins at."""
    effects = tmp_path / "effects"
    tools = registry_of(effects)
    site.publish(tools)
    site.submit_all([("often", {})] * LONG)
    keys = [site.submit("seldom") for _ in range(3)]

    with site.worker_here(tools, concurrency=1, queues=queues):
        for key in keys:
            site.wait_for(key, State.SUCCEEDED)
        wait_until(site.at_rest)

    ran = effects.read_text().split()
    waited = [place for place, name in enumerate(ran) if name == "seldom"]
    assert len(ran) == LONG + 3
    assert waited[-1] <= _STAY + 3


def test_a_worker_that_drains_gives_back_the_call_that_it_has_just_got(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The drain begins between the question for the next call and its answer."""
    effects = tmp_path / "effects"
    tools = registry_of(effects)
    workers: list[Process] = []
    settle = RunSession.settle

    def settle_and_drain(session: RunSession, *words: Any, **more: Any) -> Any:
        heard = settle(session, *words, **more)
        workers[0]._slots.draining.set()
        return heard

    site.publish(tools)
    keys = [site.submit("often") for _ in range(2)]
    monkeypatch.setattr(RunSession, "settle", settle_and_drain)
    with site.worker_here(tools, concurrency=1, queues=("long",)) as worker:
        workers.append(worker)
        site.wait_for(keys[0], State.SUCCEEDED)
        wait_until(lambda: site.state(keys[1]) is State.QUEUED)

    record = site.record(keys[1])
    assert record.fields.attempt == 0
    assert [line["op"] for line in record.history] == ["admit", "claim", "release"]
    assert effects.read_text().split() == ["often"]


def test_a_slot_that_fails_between_two_calls_gives_the_second_one_back(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    effects = tmp_path / "effects"
    tools = registry_of(effects)
    failures = iter([OSError("no room for a line of the log")])
    trace = Attempt._trace

    def fail_once(attempt: Attempt, end: Any) -> None:
        for failure in failures:
            raise failure
        trace(attempt, end)

    site.publish(tools)
    keys = [site.submit("often") for _ in range(2)]
    monkeypatch.setattr(Attempt, "_trace", fail_once)
    with site.worker_here(tools, concurrency=1, queues=("long",)):
        for key in keys:
            site.wait_for(key, State.SUCCEEDED)

    record = site.record(keys[1])
    assert [line["op"] for line in record.history] == ["admit", "claim", "release", "claim", "settle"]
    assert record.fields.attempt == 1
    assert effects.read_text().split() == ["often", "often"]


def test_a_worker_that_drains_asks_for_no_next_call(site: Site, tmp_path: Path) -> None:
    tools, workers = Registry(), list[Process]()

    @tools.tool()
    def last() -> None:
        workers[0]._slots.draining.set()

    site.publish(tools)
    keys = [site.submit("last") for _ in range(2)]
    with site.worker_here(tools, concurrency=1) as worker:
        workers.append(worker)
        site.wait_for(keys[0], State.SUCCEEDED)

    assert site.state(keys[1]) is State.QUEUED
    assert [line["op"] for line in site.record(keys[1]).history] == ["admit"]
