"""A call of which something cannot be used is one stored refusal, and its siblings run: at every interface alike."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.stream.harness import Bench
from tests.support.stream.inbox import Inbox
from toolonce.store.model.outcomes import Outcome
from toolonce.store.model.states import State
from toolonce.stream import AsyncClient, ToolCall
from toolonce.stream.inbox.consumer import Consumer

DEEP = "[" * 100_000 + "]" * 100_000
# Argument text -> why it is refused. The decoder's own tests have more of them.
TEXTS = {
    '{"n": NaN}': "non_finite",
    '{"n": 1e400}': "non_finite",
    '{"n": -Infinity}': "non_finite",
    '{"n": ' + "9" * 5_000 + "}": "too_large",
    '{"n": ' + DEEP + "}": "too_deep",
    '{"n": ' + "[" * 100 + "]" * 100 + "}": "too_deep",
    '{"n": 1, "n": 2}': "duplicate_key",
    '{"n": {"a": 1, "a": 2}}': "duplicate_key",
    '{"n": "\\ud800"}': "lone_surrogate",
    '{"\\udcff": 1}': "lone_surrogate",
    "[1]": "not_an_object",
    "7": "not_an_object",
    '"{}"': "not_an_object",
}


def value_of(text: str) -> Any:
    """As a program holds it; a member that came twice is one that it never sees."""
    if DEEP in text:
        deep: Any = []
        for _ in range(100_000):
            deep = [deep]
        return {"n": deep}
    return json.loads(text, parse_int=lambda digits: 10 ** len(digits) if len(digits) > 4_000 else int(digits))


def in_a_circle() -> dict[str, Any]:
    circle: dict[str, Any] = {}
    circle["n"] = [circle] * 10
    return circle


def shared(levels: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(levels):
        value = [value, value]
    return {"n": value}


class Unwritable:
    """Compares with nothing, as arrays of numbers do."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = None  # type: ignore[assignment]


VALUES: list[tuple[Any, str]] = [
    *((value_of(text), why) for text, why in TEXTS.items() if why != "duplicate_key"),
    ({"n": {1, 2}}, "invalid_json"), ({"n": b"x"}, "invalid_json"), ({"n": Decimal(1)}, "invalid_json"),
    ({1: 2}, "invalid_json"), ({("a", "b"): 1, "c": 2}, "invalid_json"), ({None: 1}, "invalid_json"),
    ({"n": object()}, "invalid_json"), ({"n": Unwritable()}, "invalid_json"), (Unwritable(), "invalid_json"),
    (in_a_circle(), "too_large"), (shared(60), "too_large"), ("{}", "not_an_object"), ([("n", 1)], "not_an_object"),
]  # fmt: skip

GOOD = ToolCall("pay", {"n": 1}, "good", "function", 1)


def check(outcomes: tuple[Outcome, ...], reason: str) -> None:
    refused, good = outcomes
    assert (refused.state, good.state) == (State.REFUSED, State.QUEUED)
    assert refused.failure
    assert refused.failure.code == "invalid_arguments"
    assert refused.failure.details["reason"] == reason


@pytest.mark.parametrize(("value", "reason"), VALUES, ids=[f"{n}-{why}" for n, (_, why) in enumerate(VALUES)])
def test_submit_calls_stores_one_refusal_and_says_the_same_again(bench: Bench, value: Any, reason: str) -> None:
    """Faults 18."""
    calls = [ToolCall("pay", value, "bad", "function", 0), GOOD]
    first = bench.client.submit_calls(calls, turn_id="t")
    again = bench.another_client().submit_calls(calls, turn_id="t")

    check(first.outcomes, reason)
    check(again.outcomes, reason)
    assert not any(outcome.conflict for outcome in again.outcomes)
    assert (bench.admitted, len(first.replies("openai-chat"))) == (2, 2)


@pytest.mark.parametrize(("text", "reason"), TEXTS.items(), ids=[f"{n}-{why}" for n, why in enumerate(TEXTS.values())])
def test_the_inbox_answers_the_one_call_and_admits_the_others(bench: Bench, text: str, reason: str) -> None:
    """Faults 18."""
    box, consumer = Inbox(bench), Consumer(bench.store.connection, name="one")
    calls = '[{"name": "pay", "id": "bad", "arguments": %s}, {"name": "pay", "id": "good", "arguments": {"n": 1}}]'
    entry = box.add(scope="talk", turn="1", calls=calls % text)
    consumer.step(0.01)
    consumer.close()

    admitted, refused = box.answers(entry)
    assert (admitted["state"], admitted["calls"]) == ("admitted", "2")
    assert (refused["state"], refused["id"]) == ("refused", "bad")
    assert json.loads(refused["error"])["details"]["reason"] == reason
    assert bench.admitted == 2


@pytest.fixture
def submitted(bench: Bench, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[[str], Any]:
    def submit(calls: str) -> Any:
        (tmp_path / "calls").write_text(calls)
        toolonce = CommandLine(capsys, ["--redis", bench.url, "--namespace", bench.namespace])
        words = ["submit", "--scope", "s", "--turn-id", "t", "--calls", str(tmp_path / "calls"), "--wait", "0"]
        return toolonce(*words, "--json").json["outcomes"]

    return submit


@pytest.mark.parametrize(("text", "reason"), TEXTS.items(), ids=[f"{n}-{why}" for n, why in enumerate(TEXTS.values())])
def test_the_command_line_stores_the_same_refusal(submitted: Callable[[str], Any], text: str, reason: str) -> None:
    """Faults 18."""
    refused, good = submitted(f'[{{"name": "pay", "arguments": {text}}}, {{"name": "pay", "arguments": {{"n": 1}}}}]')

    assert (refused["state"], good["state"]) == ("refused", "queued")
    assert refused["error"]["details"]["reason"] == reason


NAMES: list[tuple[Any, Any, str]] = [
    ("\ud800", "a", "unusable_name"), ("", "a", "unusable_name"), (None, "a", "unusable_name"),
    (7, "a", "unusable_name"), ("pay", "a\udcff", "unusable_id"), ("pay", 7, "unusable_id"),
    ("pay", b"a", "unusable_id"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call_id", "reason"), NAMES)
def test_a_name_or_id_that_is_no_text_refuses_its_own_call(bench: Bench, name: Any, call_id: Any, reason: str) -> None:
    """Faults 18."""
    calls = [ToolCall(name, {"n": 2}, call_id, "function", 0), GOOD]

    async def submit() -> tuple[Outcome, ...]:
        async with AsyncClient(bench.url, scope="async", namespace=bench.namespace) as client:
            return (await client.submit_calls(calls, turn_id="t")).outcomes

    check(bench.client.submit_calls(calls, turn_id="t").outcomes, reason)
    check(asyncio.run(submit()), reason)


def test_a_call_in_a_list_without_a_name_or_with_two_refuses_itself(submitted: Callable[[str], Any]) -> None:
    """Faults 18."""
    nameless, twice, half, good = submitted(
        '[{"arguments": {}}, {"name": "look", "name": "pay"}, {"name": "\\ud800"},'
        ' {"name": "pay", "arguments": {"n": 1}}]'
    )

    assert [call["state"] for call in (nameless, twice, half, good)] == ["refused"] * 3 + ["queued"]
    reasons = [call["error"]["details"]["reason"] for call in (nameless, twice, half)]
    assert reasons == ["unusable_name", "duplicate_key", "unusable_name"]


def test_text_for_a_custom_tool_that_is_none_is_refused(bench: Bench) -> None:
    """Faults 18."""
    for place, (value, reason) in enumerate(((5, "not_text"), ({"a": 1}, "not_text"), ("\ud800", "lone_surrogate"))):
        calls = [ToolCall("pay", value, "bad", "custom", 0), GOOD]  # type: ignore[arg-type]
        check(bench.client.submit_calls(calls, turn_id=f"t{place}").outcomes, reason)


def test_no_arguments_are_the_empty_object_as_in_a_stream(bench: Bench) -> None:
    nothing: list[Any] = [None, "", {}]
    for place, value in enumerate(nothing):
        call = ToolCall("look", value, "a", "function", 0)
        assert bench.client.submit_calls([call], turn_id=f"t{place}").outcomes[0].state is State.QUEUED
