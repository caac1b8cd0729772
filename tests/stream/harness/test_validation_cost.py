"""Arguments that are costly to validate delay only the caller that submits them; beyond a bound they are refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.store.scene import spec
from tests.support.stream.harness import PAY, Bench, call, calls
from toolonce.store.model.states import State
from toolonce.store.schema import validation
from toolonce.stream.harness.async_client import AsyncClient

_LIST = {"type": "array", "items": {"$ref": "#/$defs/nest"}}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "nested": {"anyOf": [_LIST, _LIST]},
        "numbers": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "labels": {"type": "array", "uniqueItems": True, "items": {"type": "string", "pattern": "^(a+)+$"}},
        "amount": {"type": "number", "multipleOf": 0.01},
    },
    "$defs": {"nest": {"anyOf": [_LIST, _LIST]}},
}
SORT = spec("sort", "read", schema=SCHEMA)


def nested(levels: int) -> Any:
    inner: Any = 1
    for _ in range(levels):
        inner = [inner]
    return inner


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Children wait until this file is there."""
    path = tmp_path / "gate"
    waiting = f"import os, time\nwhile not os.path.exists({str(path)!r}): time.sleep(0.01)\n"
    monkeypatch.setattr(validation, "_CHILD", waiting + validation._CHILD)
    return path


def test_an_event_loop_serves_others_while_a_child_judges(bench: Bench, gate: Path) -> None:
    """faults 12"""
    bench.scene.publish(SORT, PAY)

    async def main() -> None:
        async with AsyncClient(bench.url, scope="tenant-1/a", namespace=bench.namespace) as client:
            large = asyncio.create_task(client.submit_calls([call("sort", numbers=[1] * 400_000)], turn_id="large"))
            for number in range(3):
                small = await client.submit_calls(calls(number), turn_id=f"small-{number}")
                assert small.outcomes[0].state is State.QUEUED
            assert not large.done()
            gate.touch()
            assert (await large).outcomes[0].state is State.QUEUED

    asyncio.run(main())


@pytest.mark.parametrize(
    ("arguments", "state", "code"),
    [
        ({"labels": ["a" * 41 + "!"]}, State.REFUSED, "invalid_arguments"),
        ({"labels": [f"{'a' * number}" for number in range(1, 240)]}, State.QUEUED, ""),
        ({"amount": 10**400}, State.QUEUED, ""),
        ({"amount": 0.001}, State.REFUSED, "invalid_arguments"),
        ({"nested": nested(60)}, State.REFUSED, "too_costly"),
        ({"numbers": [1] * 300_000}, State.QUEUED, ""),
    ],
)
def test_each_call_gets_its_own_verdict_and_its_siblings_run(
    bench: Bench, arguments: dict[str, Any], state: State, code: str
) -> None:
    """faults 11 and 12"""
    bench.scene.publish(SORT, PAY)
    client = bench.another_client("tenant-1/other")
    batch = client.submit_calls(
        [call("pay", "a", 0, n=1), call("sort", "b", 1, **arguments), call("pay", "c", 2, n=2)], turn_id="t"
    )
    first, judged, last = batch.outcomes

    assert (first.state, last.state) == (State.QUEUED, State.QUEUED)
    assert judged.state is state
    assert (judged.failure.code if judged.failure else "") == code
