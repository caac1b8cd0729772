"""The test kit for authors of tools, used as they would use it, and held against what the real store says."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolonce.ops.examples import sql_recipe as recipe
from toolonce.store.model.states import State
from toolonce.worker import Call, DidNotHappen, NotStarted, Registry, ToolError
from toolonce.worker.testing import Fault, call_for, try_out

INVOICE = {"customer": "acme", "cents": 990}


@pytest.fixture
def books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "books.sqlite"
    monkeypatch.setenv(recipe.DATABASE, str(path))
    return path


def _invoices() -> int:
    with recipe.database() as books:
        return int(books.execute("SELECT count(*) FROM invoices").fetchone()[0])


@pytest.mark.parametrize("fault", Fault)
def test_the_sql_recipe_writes_exactly_once_under_every_fault(books: Path, fault: Fault) -> None:
    trial = try_out(recipe.create_invoice, INVOICE, fault=fault)

    assert trial.state is State.SUCCEEDED, trial.history
    assert trial.value == {"invoice": 1}
    assert _invoices() == 1


def _tools() -> tuple[Registry, list[int]]:
    tools, effects = Registry(), []

    @tools.tool
    def plain(n: int) -> int:
        effects.append(n)
        return n

    @tools.tool(begins=True)
    def begins(n: int, *, call: Call) -> int:
        call.begin()
        effects.append(n)
        return n

    @tools.tool(effect="read")
    def reads(n: int) -> int:
        effects.append(n)
        return n

    return tools, effects


@pytest.mark.parametrize(
    ("tool", "fault", "state", "effects"),
    [
        ("plain", Fault.NONE, State.SUCCEEDED, 1),
        ("plain", Fault.CRASH_BEFORE_EFFECT, State.UNKNOWN, 0),
        ("plain", Fault.CRASH_AFTER_EFFECT, State.UNKNOWN, 1),
        ("plain", Fault.REPLY_LOST, State.SUCCEEDED, 1),
        ("plain", Fault.LEASE_STOLEN, State.SUCCEEDED, 1),
        ("plain", Fault.CANCEL, State.SUCCEEDED, 1),
        ("begins", Fault.CRASH_BEFORE_EFFECT, State.SUCCEEDED, 1),
        ("begins", Fault.CRASH_AFTER_EFFECT, State.UNKNOWN, 1),
        ("begins", Fault.CANCEL, State.FAILED, 0),
        ("reads", Fault.CRASH_BEFORE_EFFECT, State.SUCCEEDED, 1),
        ("reads", Fault.CRASH_AFTER_EFFECT, State.SUCCEEDED, 2),
    ],
)
def test_it_says_what_the_store_would_say(tool: str, fault: Fault, state: State, effects: int) -> None:
    tools, happened = _tools()
    found = tools.find(tool)
    assert found

    trial = try_out(found, {"n": 7}, fault=fault)

    assert trial.state is state, trial.history
    assert len(happened) == effects


def test_it_shows_a_tool_that_repeats_its_effect() -> None:
    """What the kit is for: `idempotent` was declared, and the handler is not."""
    tools, effects = Registry(), []

    @tools.tool(effect="idempotent")
    def claims_too_much(n: int) -> None:
        effects.append(n)

    trial = try_out(claims_too_much, {"n": 1}, fault=Fault.CRASH_AFTER_EFFECT)

    assert trial.entries == 2
    assert effects == [1, 1]


def test_attempts_and_their_limits_are_played_without_waiting() -> None:
    tools = Registry()

    @tools.tool(retry=3)
    async def busy() -> None:
        raise NotStarted(retry_after=100)

    @tools.tool(effect="read", retry=3)
    async def broken() -> None:
        raise RuntimeError("again")

    refused, failed = try_out(busy, {}), try_out(broken, {})

    assert (refused.state, refused.attempts) == (State.FAILED, 6), "its deadline is 600 s away"
    assert (failed.state, failed.attempts, failed.entries) == (State.FAILED, 3, 3)


def test_arguments_that_do_not_fit_are_refused_and_nothing_is_entered() -> None:
    tools, effects = _tools()
    found = tools.find("plain")
    assert found

    trial = try_out(found, {"n": "7"})

    assert (trial.state, trial.entries, effects) == (State.REFUSED, 0, [])


def test_a_direct_call_of_a_tool_gives_its_context_and_is_refused_without() -> None:
    tools = Registry()

    @tools.tool
    def pay(cents: int, *, call: Call) -> tuple[int, str]:
        call.begin()
        call.progress(0.5)
        call.check_lease()
        return cents, call.idempotency_key

    key = try_out(pay, {"cents": 5}).idempotency_key

    assert pay(5, call=call_for(pay, {"cents": 5})) == (5, key)
    assert call_for(pay).attempt == 1
    with pytest.raises(TypeError, match="call"):
        pay(5)  # type: ignore[call-arg]


def test_it_says_whether_the_unique_key_stays_taken() -> None:
    tools = Registry()

    @tools.tool(unique_by="order")
    def bill(order: int) -> str:
        if order == 1:
            raise ToolError("no such account", effect="none")
        if order == 2:
            raise ToolError("no receipt")
        if order == 3:
            raise ConnectionResetError
        return "billed"

    @tools.tool(unique_by="order")
    def look_first(order: int) -> str:
        raise ConnectionResetError

    @look_first.reconcile
    def found(order: int) -> str:
        raise DidNotHappen

    kept = [try_out(bill, {"order": order}).keeps_unique_key for order in range(4)]
    assert kept == [True, False, True, True]
    assert not try_out(bill, {"order": "x"}).keeps_unique_key
    assert not try_out(look_first, {"order": 1}).keeps_unique_key
