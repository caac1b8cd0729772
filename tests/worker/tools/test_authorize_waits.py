"""The permission hook takes its time: it hangs, or someone asks for a stop meanwhile (G7, faults 2)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations.operators import Actor, Expected, cancel
from toolonce.worker import Call, Registry
from toolonce.worker.tools.errors import CancelRequested


class OwnTill:
    """A tool that pays, and one that looks; effects go to a file."""

    def __init__(self, folder: Path) -> None:
        self.registry = Registry()
        self.asked, self.free = threading.Event(), threading.Event()
        self._path = folder / "effects"

        @self.registry.tool(timeout=0.2)
        def pay() -> None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write("paid\n")

        @self.registry.tool
        async def wire() -> None:
            pay.handler()

        @self.registry.tool(effect="read")
        def look() -> str:
            return "seen"

    @property
    def effects(self) -> str:
        return self._path.read_text() if self._path.exists() else ""


@pytest.fixture
def till(tmp_path: Path) -> Iterator[OwnTill]:
    till = OwnTill(tmp_path)
    yield till
    till.free.set()


def test_a_hook_that_hangs_denies_at_the_run_limit_and_holds_no_slot(site: Site, till: OwnTill) -> None:
    """Faults 2: what it says later lets nothing run."""
    returned = threading.Event()

    @till.registry.authorize
    def hangs(call: Call, arguments: dict[str, Any]) -> bool:
        if call.tool == "pay":
            till.free.wait()
            returned.set()
        return True

    with site.worker_here(till.registry, concurrency=1) as process:
        record = site.wait_for(site.submit("pay"), State.REFUSED)
        site.wait_for(site.submit("look"), State.SUCCEEDED)
        till.free.set()
        assert returned.wait(10)
        wait_until(lambda: process._counters.abandoned == 0, 10, "the thread that hung has ended")

    assert record.failure
    assert (record.failure.code, record.failure.effect) == ("denied", "none")
    assert till.effects == ""


@pytest.mark.parametrize("tool", ["look", "wire"])
def test_a_stop_that_comes_while_the_hook_is_asked_is_heard_before_the_entry(
    site: Site, till: OwnTill, tool: str
) -> None:
    def is_stopped(call: Call) -> bool:
        try:
            call.check_lease()
        except CancelRequested:
            return True
        return False

    @till.registry.authorize
    def slow(call: Call, arguments: dict[str, Any]) -> bool:
        till.asked.set()
        wait_until(lambda: is_stopped(call), 10, "the stop is heard")
        return True

    with site.worker_here(till.registry):
        key = site.submit(tool)
        assert till.asked.wait(10)
        site.connection.run(cancel(site.connection.space, Expected(key), Actor("ann", "no need")))
        failure = site.wait_for(key, State.FAILED).failure

    assert failure
    assert (failure.code, failure.effect) == ("cancelled", "none")
    assert till.effects == ""


@pytest.mark.parametrize("is_inside", [True, False])
def test_a_worker_that_leaves_a_handler_inside_does_not_say_that_it_has_ended(
    site: Site, till: OwnTill, is_inside: bool
) -> None:
    """Faults 10: until the process is gone, that handler may have its effect; "not there" must not run it again."""

    @till.registry.tool(rerun_absent=True)
    def book() -> None:
        till.asked.set()
        if is_inside:
            till.free.wait()

    with site.worker_here(till.registry, grace_s=0.1) as process:
        key = site.submit("book")
        assert till.asked.wait(10)
        if not is_inside:
            site.wait_for(key, State.SUCCEEDED)

    told = site.connection.command("GET", site.connection.space.worker_key(process.name))
    assert (told == b"ended") is not is_inside
