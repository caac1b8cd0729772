"""The permission hook: what permits a call, what denies it, and that nothing else lets one run (faults 2)."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.processes.workers import Site
from toolonce.ops.exit_codes import ExitCode, code_of
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.states import State
from toolonce.worker import Allow, Ask, Call, Deny, Registry
from toolonce.worker.runtime.preflight import check_start
from toolonce.worker.runtime.process import Options
from toolonce.worker.testing import try_out
from toolonce.worker.tools.audit import audit
from toolonce.worker.tools.authorize import Hook, Rules, consult
from toolonce.worker.tools.errors import BadTool


class PayingTool:
    """A tool that pays, and its effects in a file."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.registry = Registry()
        self._path = folder / "effects"

        @self.registry.tool(**options)
        def pay(order: dict[str, Any], tags: list[str]) -> str:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([order, tags]) + "\n")
            return "paid"

        self.pay = pay

    @property
    def effects(self) -> list[Any]:
        return [json.loads(line) for line in self._path.read_text().splitlines()] if self._path.exists() else []


ARGUMENTS: dict[str, Any] = {"order": {"cents": 5}, "tags": ["new"]}


def _said(answer: Any) -> Callable[..., Any]:
    return lambda call, arguments: answer


async def _async_deny(call: Call, arguments: dict[str, Any]) -> Deny:
    return Deny("not now")


class _Denies:
    async def __call__(self, call: Call, arguments: dict[str, Any]) -> Deny:
        return Deny("not now")

    async def method(self, call: Call, arguments: dict[str, Any]) -> bool:
        return False


async def _async_fails(call: Call, arguments: dict[str, Any]) -> None:
    raise RuntimeError("the rules are gone")


async def _many(call: Call, arguments: dict[str, Any]) -> AsyncIterator[Allow]:
    yield Allow()


def _generates(call: Call, arguments: dict[str, Any]) -> Iterator[Allow]:
    yield Allow()


def _exits(call: Call, arguments: dict[str, Any]) -> None:
    raise SystemExit(0)


def _raises(error: BaseException) -> Callable[..., Any]:
    def hook(call: Call, arguments: dict[str, Any]) -> None:
        raise error

    return hook


class _Sly:
    """Equal to whatever it is compared with, and true."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__


class _Both(Deny, Allow):
    """Whoever makes such a class may mean either."""


DENYING: dict[str, Any] = {
    "Deny and Allow at once": _said(_Both()),
    "async function": _async_deny,
    "partial of an async function": functools.partial(_async_deny),
    "object with an async __call__": _Denies(),
    "async method": _Denies().method,
    "lambda that returns an awaitable": lambda call, arguments: _async_deny(call, arguments),
    "async function that raises": _async_fails,
    "async function that answers with a text": lambda call, arguments: _text(),
    "async generator": _many,
    "generator": _generates,
    "SystemExit": _exits,
    "KeyboardInterrupt": _raises(KeyboardInterrupt()),
    "an exception that is returned": _said(ValueError("no")),
    "Deny": _said(Deny),
    "Ask": _said(Ask),
    "Allow": _said(Allow),
    "Deny()": _said(Deny()),
    "Deny with a reason that is not text": _said(Deny(reason=ValueError("limit"))),  # type: ignore[arg-type]
    "False": _said(False),
    "'deny'": _said("deny"),
    "'allow'": _said("allow"),
    "0": _said(0),
    "1": _said(1),
    "1.0": _said(1.0),
    "{}": _said({}),
    "[]": _said([]),
    "''": _said(""),
    "...": _said(...),
    "equal to everything": _said(_Sly()),
}


async def _text() -> str:
    return "deny"


def _consult(hook: Hook) -> Any:
    return consult(Rules("never", (hook,)), _context(), dict, approved=True)


def _context() -> Call:
    made: list[Call] = []
    registry = Registry()

    @registry.tool
    def look(call: Call) -> None:
        made.append(call)

    try_out(look, {})
    return made[0]


@pytest.mark.parametrize("hook", DENYING.values(), ids=DENYING)
def test_an_answer_that_is_none_of_the_documented_ones_denies_even_what_a_person_approved(hook: Hook) -> None:
    """Faults 2."""
    assert isinstance(_consult(hook), Deny)


@pytest.mark.parametrize("said", [None, True, Allow()])
def test_the_documented_answers_permit_awaited_or_not(said: Any) -> None:
    """Faults 2."""

    async def waits(call: Call, arguments: dict[str, Any]) -> Any:
        return said

    assert _consult(_said(said)) == _consult(waits) == Allow()


@pytest.mark.parametrize("name", ["async function", "object with an async __call__", "Ask", "'deny'", "SystemExit"])
def test_a_worker_runs_nothing_that_its_hook_did_not_permit(site: Site, tmp_path: Path, name: str) -> None:
    """Faults 2."""
    ledger = PayingTool(tmp_path)
    ledger.registry.authorize(DENYING[name])

    with site.worker_here(ledger.registry):
        record = site.wait_for(site.submit("pay", **ARGUMENTS), State.REFUSED)

    assert record.failure
    assert record.failure.code == "denied"
    assert ledger.effects == []


def test_an_async_hook_runs_where_the_async_tools_run(site: Site, tmp_path: Path) -> None:
    """Faults 2: what it shares with them, such as a connection, belongs to one event loop."""
    ledger, loops = PayingTool(tmp_path), []

    @ledger.registry.tool
    async def look() -> None:
        loops.append(asyncio.get_running_loop())

    @ledger.registry.authorize
    async def permit(call: Call, arguments: dict[str, Any]) -> Allow:
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())
        return Allow()

    with site.worker_here(ledger.registry):
        site.wait_for(site.submit("look"), State.SUCCEEDED)
        site.wait_for(site.submit("pay", **ARGUMENTS), State.SUCCEEDED)

    assert loops == [loops[0]] * 3
    assert len(ledger.effects) == 1


@pytest.mark.parametrize("options", [{}, {"schema": {"type": "object"}}], ids=["signature", "schema"])
def test_what_a_hook_changes_in_its_arguments_changes_nothing_that_runs(
    site: Site, tmp_path: Path, options: dict[str, Any]
) -> None:
    """Faults 2: else something else would run than what a person approved."""
    ledger = PayingTool(tmp_path, **options)

    @ledger.registry.authorize
    def masks(call: Call, arguments: dict[str, Any]) -> None:
        arguments["order"]["cents"] = "***"
        arguments["tags"].append("changed")
        arguments.clear()

    with site.worker_here(ledger.registry):
        site.wait_for(site.submit("pay", **ARGUMENTS), State.SUCCEEDED)

    assert ledger.effects == [[ARGUMENTS["order"], ARGUMENTS["tags"]]]


def test_arguments_of_a_type_that_cannot_be_copied_are_still_shown_to_the_hook_and_run() -> None:
    """Faults 2."""
    registry, seen = Registry(), []

    @registry.tool
    def add(numbers: Iterable[int]) -> int:
        return sum(numbers)

    @registry.authorize
    def counts(call: Call, arguments: dict[str, Any]) -> bool:
        seen.extend(arguments["numbers"])
        return True

    assert try_out(add, {"numbers": [1, 2]}).value == 3
    assert seen == [1, 2]


def test_a_tool_that_leaves_its_approval_to_a_hook_starts_with_one_only(tmp_path: Path) -> None:
    """Faults 2."""
    ledger = PayingTool(tmp_path, approval="hook")
    outer = Registry()
    outer.include(ledger.registry)

    for registry in (ledger.registry, outer):
        with pytest.raises(BadTool, match="approval='hook' of pay needs a hook") as refused:
            check_start(registry, Options(), Keyring())
        assert code_of(refused.value) is ExitCode.USAGE
        (verdict,) = audit(registry)
        assert verdict.is_risky
        assert "leaves its approval to a hook" in " ".join(finding.text for finding in verdict.findings)

    ledger.registry.authorize(_said(None))
    check_start(outer, Options(), Keyring())
    assert not any("hook" in finding.text for verdict in audit(outer) for finding in verdict.findings)


def test_toolonce_work_does_not_start_without_the_hook_that_a_tool_needs(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Faults 2."""
    (tmp_path / "unasked_tools.py").write_text(
        "from toolonce.worker import Registry\n"
        "tools = Registry()\n"
        "@tools.tool(approval='hook')\n"
        "def pay(cents: int) -> None: ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    toolonce = CommandLine(capsys, ("--redis", site.url, "--namespace", site.namespace))
    done = toolonce("work", "--tools", "unasked_tools:tools", "--burst")
    assert done.code == ExitCode.USAGE
    assert "approval='hook' of pay needs a hook" in done.err


def test_even_a_worker_that_was_started_past_the_check_runs_no_such_tool(site: Site, tmp_path: Path) -> None:
    """Faults 2."""
    ledger = PayingTool(tmp_path, approval="hook")
    with site.worker_here(ledger.registry):
        site.wait_for(site.submit("pay", **ARGUMENTS), State.REFUSED)
    assert ledger.effects == []


def _nested(inner: Hook | None, outer: Hook | None, *, take: str) -> tuple[Registry, list[int]]:
    """A tool two registries deep: its own one's hook and the outermost one's."""
    first, middle, last, effects = Registry(), Registry(), Registry(), []

    @first.tool
    def pay(cents: int) -> None:
        effects.append(cents)

    if take == "add":
        middle.add(pay)
    else:
        middle.include(first)
    last.include(middle)
    if inner:
        first.authorize(inner)  # declared after it was taken
    if outer:
        last.authorize(outer)
    return last, effects


@pytest.mark.parametrize("take", ["include", "add"])
@pytest.mark.parametrize(
    ("inner", "outer", "state"),
    [
        (Deny(), None, State.REFUSED),
        (Deny(), Allow(), State.REFUSED),
        (None, Deny(), State.REFUSED),
        (Allow(), Deny(), State.REFUSED),
        (Ask(), Deny(), State.REFUSED),
        (Ask(), Allow(), State.HELD),
        (Allow(), Ask(), State.HELD),
        (Allow(), None, State.SUCCEEDED),
    ],
)
def test_a_tool_that_is_taken_by_another_registry_keeps_its_hook(
    take: str, inner: Any, outer: Any, state: State, site: Site
) -> None:
    """Faults 2."""
    hooks = [_said(answer) if answer else None for answer in (inner, outer)]
    registry, effects = _nested(*hooks, take=take)

    with site.worker_here(registry):
        site.wait_for(site.submit("pay", cents=5), state)

    assert effects == ([5] if state is State.SUCCEEDED else [])


def test_the_test_kit_asks_the_hook_as_a_worker_does(tmp_path: Path) -> None:
    """Faults 2."""
    ledger = PayingTool(tmp_path)

    @ledger.registry.authorize
    async def rules(call: Call, arguments: dict[str, Any]) -> Any:
        cents = arguments["order"].pop("cents")
        return Deny("too much") if cents > 100 else Ask("large") if cents > 10 else None

    denied = try_out(ledger.pay, {"order": {"cents": 101}, "tags": []})
    held = try_out(ledger.pay, {"order": {"cents": 11}, "tags": []})
    assert (denied.state, denied.failure and denied.failure.message) == (State.REFUSED, "not run: too much")
    assert (held.state, held.entries, ledger.effects) == (State.HELD, 0, [])
    assert held.approve().state is State.SUCCEEDED
    assert ledger.effects == [[{"cents": 11}, []]]
    with pytest.raises(ValueError, match="nothing waits for approval"):
        held.approve()


def test_what_is_no_function_is_no_hook() -> None:
    """Faults 2."""
    with pytest.raises(BadTool, match="is a function"):
        Registry().authorize(None)  # type: ignore[type-var]
