"""A user's file as the type checkers see it: right use has no error, and each wrong use has one where it stands."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
RIGHT = """
from collections.abc import Callable
from typing import Any, assert_type
from toolonce.store import CallNotSucceeded, Outcome, ToolonceError
from toolonce.stream import (
    Answer, AsyncAnswer, AsyncClient, AsyncConversation, AsyncHooks, AsyncOpener, Client, Conversation, Dialect, Hooks,
    Message, Opener, ToolCall, ToolDefinitions, TurnDecoder, decode_body, forbid_parallel_calls, request_body,
    user_message,
)
from toolonce.worker import Call, Effect, Registry, Tool, call_for

tools = Registry()


@tools.tool(effect="mutating", timeout=20)
def create_invoice(customer: str, cents: int = 0, *, call: Call) -> dict[str, int]:
    return {customer: cents}


@tools.tool
async def look(city: str) -> str:
    return city


@create_invoice.reconcile
def reconcile(customer: str, cents: int = 0, *, call: Call) -> dict[str, int]:
    return {customer: cents}


async def use() -> None:
    assert_type(create_invoice("acme", 5, call=call_for(create_invoice)), dict[str, int])
    assert_type(await look("Lisboa"), str)
    assert_type(reconcile("acme", call=call_for(create_invoice)), dict[str, int])


dialect: Dialect = "openai-chat"
TurnDecoder(dialect)
decode_body(b"{}", dialect)
body: dict[str, Any] = forbid_parallel_calls({"tools": []}, "anthropic")
call = ToolCall("add", {"a": 1}, call_id="x")
listed: list[Tool] = [create_invoice, look]
effect: Effect = create_invoice.spec.effect


async def offer(client: Client, other: AsyncClient) -> list[dict[str, Any]]:
    offered: ToolDefinitions = client.tools("anthropic", only=["create_invoice"])
    asked: dict[str, Any] = offered.request({"model": "m"})
    notes: list[str] = [note.text for note in offered.notes if note.refused]
    return [asked, offered.options, *await other.tools(dialect), *tools.definitions(dialect), {"notes": notes}]


async def one_by_one(client: Client, other: AsyncClient) -> list[Outcome]:
    first: Outcome = client.call("add", {"a": 1}, call_id="c1", turn_id="t", timeout=5, ordered=True)
    second: Outcome = await other.call("add", '{"a": 1}', intent="order-7")
    batch = client.batch("t")
    seen: list[Outcome] = [*batch.events(1.0, until_held=True)]
    async for outcome in (await other.batch("t")).events(after=seen):
        seen.append(outcome)
    for held in batch.held:
        client.approve(held, actor="maria")
    return [first, second, *seen]


def talk(client: Client, ask: Callable[[list[Message]], Opener]) -> tuple[Outcome, ...]:
    hooks = Hooks(on_outcome=lambda outcome: print(outcome.word), trim=lambda groups: groups[-3:])
    body: dict[str, Any] = request_body({"model": "m"}, [], "anthropic", system="Be brief.")
    talking = Conversation(client, "anthropic", ask, hooks=hooks, history=[user_message("Hello.", "anthropic")])
    said: Answer = talking.say([{"type": "text", "text": str(body)}], step="s1")
    if said.batch is not None:
        said.batch.wait(1)
    for held in said.held:
        talking.approve(held, actor="maria")
    return said.held


async def told_async(outcome: Outcome) -> None:
    print(outcome.word)


async def talk_async(client: AsyncClient, ask: Callable[[list[Message]], AsyncOpener]) -> None:
    talking = AsyncConversation(client, "anthropic", ask, hooks=AsyncHooks(on_outcome=told_async))
    said: AsyncAnswer = await talking.say("Hello.", step="s1")
    if said.ended == "held" and said.batch is not None:
        await said.batch.wait(1)
        await talking.deny(said.held[0], actor="maria")


def answer(client: Client) -> Any:
    outcomes: tuple[Outcome, ...] = client.submit_calls([call], turn_id="t").wait(timeout=1)
    try:
        return outcomes[0].result_or_raise()
    except CallNotSucceeded as error:
        return error.outcome.failure
    except ToolonceError:
        return None
"""
WRONG = {
    "an argument that there is not": "create_invoice('acme', wrong=2, call=call_for(create_invoice))",
    "an argument of another type": "create_invoice(1, call=call_for(create_invoice))",
    "a call without its context": "create_invoice('acme', 5)",
    "a result of another type": "number: int = create_invoice('acme', call=call_for(create_invoice))",
    "an argument of an async tool": "look(city=5)",
    "an option that there is not": "@tools.tool(effekt='read')\ndef first() -> None: ...",
    "an option's word misspelt": "@tools.tool(effect='reads')\ndef second() -> None: ...",
    "an option of another type": "@tools.tool(timeout='20')\ndef third() -> None: ...",
    "a dialect before the data": "decode_body('anthropic', b'{}')",
    "a dialect misspelt": "TurnDecoder('openai-chats')",
    "the dialect of a registry's definitions misspelt": "tools.definitions('antropic')",
    "a request's dialect misspelt": "forbid_parallel_calls({}, 'antropic')",
    "the dialect of tools misspelt": "Client(scope='s').tools('antropic')",
    "a public name misspelt": "from toolonce.stream import Clientt",
    "an option of a single call misspelt": "Client(scope='s').call('add', {}, callid='x')",
    "an option of a single call of another type": "Client(scope='s').call('add', {}, call_id='x', occurrence='2')",
    "a conversation's end misspelt": "def ended(a: Answer) -> bool: return a.ended == 1 + 'held'",
    "a blocking hook that is a coroutine function": "Hooks(on_outcome=told_async)",
    "content that is no message": "def say(c: Conversation) -> Any: return c.say(7, step='s')",
    "a call's option that there is not": "ToolCall('add', {}, id='x')",
}


def wrong_file() -> tuple[str, dict[int, str]]:
    """The right file with the wrong uses behind it; by line, what is wrong there."""
    lines, places = RIGHT.splitlines(), {}
    for what, use in WRONG.items():
        places[len(lines) + 1] = what
        lines += use.splitlines()
    return "\n".join(lines) + "\n", places


def mypy(file: Path) -> set[int]:
    """Lines of errors under ``strict``."""
    config = file.with_suffix(".ini")
    config.write_text(f"[mypy]\nstrict = true\nmypy_path = {ROOT / '.types'}\nexplicit_package_bases = true\n")
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), "--follow-imports", "silent",
               "--cache-dir", str(ROOT / ".mypy_cache" / "user"), str(file)]  # fmt: skip
    said = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, timeout=110)
    assert said.returncode in (0, 1), said.stdout + said.stderr
    return {int(line) for line in re.findall(rf"^{file.name}:(\d+): error", said.stdout, re.MULTILINE)}


def basedpyright(file: Path) -> set[int]:
    """Lines of errors in the ``standard`` mode, which is that of pyright."""
    config = file.with_suffix(".json")
    config.write_text(json.dumps({"typeCheckingMode": "standard", "extraPaths": [str(ROOT / ".types")]}))
    command = [sys.executable, "-m", "basedpyright", "--project", str(config), "--outputjson",
               "--pythonpath", sys.executable, str(file)]  # fmt: skip
    said = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, timeout=110)
    assert said.returncode in (0, 1), said.stdout + said.stderr
    found = json.loads(said.stdout)["generalDiagnostics"]
    return {each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"}


@pytest.mark.slow
@pytest.mark.parametrize("check", [mypy, basedpyright], ids=lambda check: check.__name__)
def test_each_wrong_use_is_an_error_where_it_stands_and_right_use_is_none(
    check: Callable[[Path], set[int]], tmp_path: Path
) -> None:
    pytest.importorskip(check.__name__, reason="the dependency group `check` is not installed")
    text, places = wrong_file()
    file = tmp_path / "user_file.py"
    file.write_text(text)

    found = check(file)

    assert {what for line, what in places.items() if line not in found} == set()
    assert [line for line in found if line < min(places)] == []
