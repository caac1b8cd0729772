"""Registries: what may be declared about a tool, what is refused, and where registries are found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tenacity import stop_after_attempt, wait_fixed

from toolonce.store.model.specs import Effect
from toolonce.worker import Call, Isolation, Registry, Retry
from toolonce.worker.tools.errors import BadTool, ToolsNotLoaded
from toolonce.worker.tools.loading import load_registry
from toolonce.worker.tools.mcp_tools import annotations_of, effect_of


def test_a_tool_is_mutating_unless_it_says_otherwise() -> None:
    tools = Registry()

    @tools.tool
    def pay(amount: int) -> None: ...

    assert pay.spec.effect is Effect.MUTATING
    assert pay.isolation is Isolation.THREAD


def test_a_registered_function_can_still_be_called() -> None:
    tools = Registry()

    @tools.tool(effect="read")
    def double(number: int) -> int:
        return 2 * number

    assert double(4) == 8
    assert "double" in tools


def test_what_is_declared_is_published_in_milliseconds() -> None:
    tools = Registry()

    @tools.tool(
        effect="idempotent", timeout=1.5, deadline=60, concurrency=3, order_by="path", queue="files", version="7"
    )
    def write(path: str) -> None: ...

    @write.reconcile
    def written(path: str) -> None: ...

    spec = tools.specs()[0]
    assert (spec.timeout_ms, spec.deadline_ms, spec.concurrency) == (1500, 60_000, 3)
    assert (spec.order_by, spec.queue, spec.version, spec.reconciles) == (("path",), "files", "7", True)


@pytest.mark.parametrize(
    ("given", "attempts"), [(3, 3), (stop_after_attempt(4), 4), (wait_fixed(1), 5), (Retry(attempts=2), 2)]
)
def test_retries_may_be_given_in_many_ways(given: Any, attempts: int) -> None:
    tools = Registry()
    tools.tool(name="t", retry=given)(lambda: None)

    assert tools.specs()[0].max_attempts == attempts


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"effect": "harmless"}, "effect is 'read', 'idempotent' or 'mutating'"),
        ({"name": "no spaces please"}, "its name needs"),
        ({"timeout": -1}, "timeout -1 is negative"),
        ({"deadline": 0}, "deadline must be positive"),
        ({"concurrency": 0}, "would never run it"),
        ({"order_by": "b"}, "order_by names b"),
        ({"secret": ("b.token",)}, "secret names b.token"),
        ({"begins": True}, "needs the parameter 'call'"),
        ({"approval": "sometimes"}, "approval is"),
        ({"isolation": "async"}, "needs an async function"),
        ({"retry": 0}, "run nothing"),
        ({"name": "t", "after": "t"}, "cannot come after itself"),
        ({"time_out": 5}, "there is no option time_out"),
        ({"timeout": "5"}, "timeout '5' is not a number of seconds"),
        ({"deadline": float("inf")}, "deadline inf is not a number of seconds"),
        ({"queue": ""}, "queue '' is not text"),
        ({"queue": "a\nb"}, "is not text without spaces"),
        ({"version": 2}, "version 2 is not text"),
        ({"concurrency": 2.5}, "2.5 is not a whole number"),
        ({"rate": "100"}, "rate '100' is no rate: write calls/unit, with s, min, h or d, for example 100/min"),
        ({"rate": "0/min"}, "rate '0/min' is no rate"),
        ({"rate": 100}, "rate 100 is no rate"),
        ({"isolation": "fork"}, "isolation is 'thread', 'async' or 'process'"),
        ({"retry": "often"}, "retry: 'often' is not a number of attempts"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(options: dict[str, Any], complaint: str) -> None:
    def tool(a: int) -> None: ...

    with pytest.raises(BadTool, match=complaint) as refused:
        Registry().tool(**options)(tool)

    assert "\n" not in str(refused.value)


def test_a_generator_is_refused() -> None:
    def lines() -> Iterator[str]:
        yield "one of many"

    with pytest.raises(BadTool, match="a generator yields many"):
        Registry().tool(lines)


def test_one_accepted_version_may_be_given_as_a_text() -> None:
    tools = Registry()
    tool = tools.tool(name="t", version="12", accepts="11")(lambda: None)

    assert [tool.accepts_version(version) for version in ("12", "11", "1")] == [True, True, False]


def test_two_tools_of_one_name_are_refused() -> None:
    tools = Registry()
    tools.tool(name="t")(lambda: None)

    with pytest.raises(BadTool, match="one of this name already"):
        tools.tool(name="t")(lambda: None)


def test_an_untrusted_hint_never_makes_a_tool_safer() -> None:
    assert effect_of({"readOnlyHint": True}) is Effect.MUTATING
    assert effect_of({"readOnlyHint": True}, trusted=True) is Effect.READ
    assert effect_of({"idempotentHint": True}, trusted=True) is Effect.IDEMPOTENT
    assert effect_of({}, trusted=True) is Effect.MUTATING


def test_what_we_tell_others_says_no_more_than_is_known() -> None:
    tools = Registry()
    tools.tool(name="t", effect="read")(lambda: None)

    assert annotations_of(tools.specs()[0]) == {"readOnlyHint": True, "idempotentHint": True}


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to put modules into, the working directory of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


def test_a_registry_is_found_in_the_working_directory(app: Path) -> None:
    (app / "found_tools.py").write_text(
        "from toolonce.worker import Registry\ntools = Registry()\n@tools.tool\ndef t() -> None: ...\n"
    )

    assert [tool.name for tool in load_registry("found_tools:tools")] == ["t"]


@pytest.mark.parametrize(
    ("text", "place", "complaint"),
    [
        ("", "broken_a", "write it as package.module:registry"),
        ("", "not_there:tools", r"no module 'not_there' in /.* or on Python's path; go to the folder of your tools"),
        ("import nothing_like_this", "broken_b:tools", r"ModuleNotFoundError.*broken_b.py:1"),
        ("1 / 0", "broken_c:tools", r"ZeroDivisionError: division by zero \(broken_c.py:1\)"),
        ("tools = 5", "broken_d:tools", "has a int under 'tools', not a Registry"),
        ("", "broken_e:tools", "has nothing under 'tools'"),
        ("from toolonce.worker import Registry\ntools = Registry()", "broken_f:tools", "holds no tools"),
        ("raise SystemExit(3)", "broken_g:tools", "SystemExit"),
    ],
)
def test_what_cannot_be_loaded_is_named_in_one_line(app: Path, text: str, place: str, complaint: str) -> None:
    (app / f"{place.partition(':')[0]}.py").write_text(text) if "broken" in place else None

    with pytest.raises(ToolsNotLoaded, match=complaint) as refused:
        load_registry(place)

    assert "\n" not in str(refused.value)


def test_a_context_is_no_argument(app: Path) -> None:
    tools = Registry()

    @tools.tool
    def t(call: Call) -> None: ...

    assert tools.specs()[0].schema["properties"] == {}


def test_a_reconcile_that_does_not_take_the_handlers_arguments_is_refused_where_it_is_declared() -> None:
    """Else it fails when a call is in doubt, each time it is asked, and never settles one."""
    tools = Registry()

    @tools.tool
    def pay(cents: int, to: str = "", *, call: Call) -> None: ...

    with pytest.raises(BadTool, match=r"tool pay: its reconcile does not take the handler's arguments: "):
        pay.reconcile(lambda sents, to: None)
    with pytest.raises(BadTool, match="missing a required argument: 'payee'"):
        pay.reconcile(lambda cents, to, payee: None)
    assert not pay.spec.reconciles
    assert pay.reconciler is None


def _looks(cents: int, to: str, *, call: Call) -> None: ...


@pytest.mark.parametrize("reconcile", [_looks, lambda **arguments: None, lambda cents, to, hint="": None])
def test_a_reconcile_that_takes_the_handlers_arguments_is_accepted(reconcile: Callable[..., None]) -> None:
    tools = Registry()

    @tools.tool
    def pay(cents: int, to: str = "") -> None: ...

    pay.reconcile(reconcile)
    assert pay.spec.reconciles


def test_what_identifies_an_effect_is_declared_by_name() -> None:
    tools = Registry()

    @tools.tool(unique_by="order", unique_in="tenant", unique_for="30d")
    def bill(order: str, cents: int = 5) -> None: ...

    spec = bill.spec
    assert (spec.unique_by, spec.unique_in, spec.unique_for_ms) == (("order",), "tenant", 30 * 86_400_000)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"unique_by": "cents"}, "may be left out"),
        ({"unique_by": "items"}, "may be a list"),
        ({"unique_by": "order", "secret": "order"}, "is secret"),
        ({"unique_by": "order", "unique_for": "soon"}, "write 90s, 5m, 1h or 7d"),
        ({"unique_by": "order", "unique_for": 0}, "positive"),
        ({"unique_for": "1d"}, "name the arguments"),
    ],
)
def test_a_unique_key_that_cannot_work_is_refused_where_it_is_declared(options: Any, words: str) -> None:
    tools = Registry()

    def bill(order: str, items: list[str], cents: int = 5) -> None: ...

    with pytest.raises(BadTool, match=words):
        tools.tool(**options)(bill)


@pytest.mark.parametrize("option", ["deadline", "timeout", "approval_lifetime"])
def test_a_time_is_a_number_of_seconds(option: str) -> None:
    options: Any = {"name": "pay", option: "30s"}
    with pytest.raises(BadTool, match="is not a number of seconds"):
        Registry().tool(**options)(lambda: None)
