"""Calls that end before their effect say that nothing was executed, and are right; effects are counted in a file
(faults 28)."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations.operators import Actor, Expected, cancel, retry
from toolonce.stream.replies.answers import for_model
from toolonce.worker import Ask, Call, LeaseLost, NotStarted, Registry, ToolError
from toolonce.worker.execution import run_session
from toolonce.worker.execution.run_session import RunSession

NOTHING = "Nothing was executed."


class Tools:
    """A tool whose effect is a line in a file, and which ends as a test says."""

    def __init__(self, folder: Path, site: Site) -> None:
        self.registry, self._path, self._site = Registry(), folder / "effects", site
        self._path.touch()

    @property
    def effects(self) -> int:
        return len(self._path.read_text().splitlines())

    def write(self) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write("once\n")

    def told(self, key: str) -> str:
        [outcome] = self._site.client.batch(self._site.record(key).fields.turn).outcomes
        return for_model(outcome)


@pytest.fixture
def tools(site: Site, tmp_path: Path) -> Tools:
    return Tools(tmp_path, site)


def _again(site: Site, key: str) -> None:
    record = site.record(key)
    site.connection.run(
        retry(site.connection.space, Expected(key, record.state, record.fence), Actor("ann", "once more"))
    )


def _cancel(site: Site, key: str) -> None:
    site.connection.run(cancel(site.connection.space, Expected(key), Actor("ann")))


def test_a_call_that_could_not_start_says_so_and_a_retried_one_does_not_speak_for_the_run_before(
    site: Site, tools: Tools
) -> None:
    refuse = [True]

    @tools.registry.tool(deadline=30)
    def pay() -> None:
        if refuse:
            raise NotStarted("no connection", retry_after=60)  # later than its deadline
        tools.write()
        raise ConnectionResetError("no answer")

    with site.worker_here(tools.registry):
        key = site.submit("pay")
        site.wait_for(key, State.FAILED)
        assert NOTHING in tools.told(key)
        assert tools.effects == 0

        refuse.clear()
        _again(site, key)
        site.wait_for(key, State.UNKNOWN)
        refuse.append(True)
        _again(site, key)
        site.wait_for(key, State.FAILED)
        assert tools.effects == 1
        assert NOTHING not in tools.told(key)


@pytest.mark.parametrize("ends", ["raises", "stops"])
def test_a_call_that_ends_before_its_begin_says_that_nothing_was_executed(site: Site, tools: Tools, ends: str) -> None:
    entered: list[str] = []

    @tools.registry.tool(begins=True)
    def pay(call: Call) -> None:
        entered.append(call.key)
        if ends == "raises":
            raise RuntimeError("no such account")
        wait_until(lambda: site.record(call.key).fields.cancel_requested, description="a stop")
        call.begin()
        tools.write()

    with site.worker_here(tools.registry):
        key = site.submit("pay")
        if ends == "stops":
            wait_until(lambda: entered, description="it is entered")
            _cancel(site, key)
        record = site.wait_for(key, State.FAILED)

    assert record.failure
    assert (record.failure.effect, tools.effects) == ("none", 0)
    assert NOTHING in tools.told(key)


@pytest.mark.parametrize("end", ["cancel", "deny"])
def test_a_retried_call_that_ends_while_it_waits_does_not_say_that_nothing_was_executed(
    site: Site, tools: Tools, end: str
) -> None:
    @tools.registry.tool
    def pay() -> None:
        tools.write()
        raise ConnectionResetError("no answer")

    asks: list[Any] = [None]
    tools.registry.authorize(lambda call, arguments: asks[-1])
    with site.worker_here(tools.registry):
        key = site.submit("pay")
        site.wait_for(key, State.UNKNOWN)
        asks.append(Ask())
        _again(site, key)
        record = site.wait_for(key, State.HELD)
        if end == "cancel":
            _cancel(site, key)
        else:
            [outcome] = site.client.batch(record.fields.turn).outcomes
            site.client.deny(outcome, actor="ann")

    assert tools.effects == 1
    assert site.state(key) in (State.CANCELLED, State.REFUSED)
    assert NOTHING not in tools.told(key)
    assert "may have had its effect" in tools.told(key)


def test_a_call_that_is_cancelled_between_attempts_that_never_started_says_that_nothing_was_executed(
    site: Site, tools: Tools
) -> None:
    @tools.registry.tool
    def pay() -> None:
        raise NotStarted("no connection", retry_after=60)

    with site.worker_here(tools.registry):
        key = site.submit("pay")
        wait_until(lambda: site.record(key).fields.error and site.state(key) is State.QUEUED, description="later")
        _cancel(site, key)

    assert site.state(key) is State.CANCELLED
    assert NOTHING in tools.told(key)


def test_a_thread_left_behind_cannot_begin_once_it_was_decided_that_nothing_has_begun(
    site: Site, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its `begin` is under way when the handler raises, and reaches the store before the end does."""
    is_under_way, is_decided = threading.Event(), threading.Event()
    left_behind: list[threading.Thread] = []

    def reach(point: str) -> None:
        if point == "before_begin":
            is_under_way.set()
            is_decided.wait(30)

    def settle(session: RunSession, *ending: Any, **more: Any) -> Any:
        is_decided.set()
        left_behind[0].join(30)
        return send(session, *ending, **more)

    send = RunSession.settle
    monkeypatch.setattr(run_session, "reach", reach)
    monkeypatch.setattr(RunSession, "settle", settle)

    def have_effect(call: Call) -> None:
        with suppress(LeaseLost):
            call.begin()
            tools.write()

    @tools.registry.tool(begins=True)
    def pay(call: Call) -> None:
        left_behind.append(threading.Thread(target=have_effect, args=(call,)))
        left_behind[0].start()
        is_under_way.wait(30)
        raise RuntimeError("no such account")

    with site.worker_here(tools.registry):
        key = site.submit("pay")
        site.wait_for(key, State.FAILED)

    assert NOTHING in tools.told(key)
    assert tools.effects == 0


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_tool_that_fails_without_effect_tells_the_model_so(
    site: Site, tools: Tools, isolation: Literal["thread", "process"]
) -> None:
    @tools.registry.tool(isolation=isolation)
    def pay() -> None:
        raise ToolError("no such account", code="no_account", effect="none")

    with site.worker_here(tools.registry):
        key = site.submit("pay")
        record = site.wait_for(key, State.FAILED)

    assert record.failure
    assert (record.failure.code, record.failure.effect, tools.effects) == ("no_account", "none", 0)
    assert NOTHING in tools.told(key)
