"""While one tenant's entry is judged in a child process, the consumer serves the others, and each entry is dealt with
once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.store.scene import spec
from tests.support.stream.harness import LOOK, PAY, Bench
from tests.support.stream.inbox import Inbox
from tests.support.wait import wait_until
from toolonce.store.schema import validation
from toolonce.stream.inbox import consumer as inbox
from toolonce.stream.inbox.consumer import Consumer

NUMBERS = {"type": "object", "properties": {"a": {"items": {"type": "integer", "minimum": 0}}}}
SORT = spec("sort", "read", schema=NUMBERS)
HEAVY = {"name": "sort", "arguments": {"a": [1] * 150_000}, "id": "h"}
WRONG = {"name": "sort", "arguments": {"a": [*([1] * 150_000), -1]}, "id": "h"}


def pay(number: int) -> dict[str, Any]:
    return {"name": "pay", "arguments": {"n": number}, "id": "a"}


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Children wait until this file is there."""
    path = tmp_path / "gate"
    waiting = f"import os, time\nwhile not os.path.exists({str(path)!r}): time.sleep(0.01)\n"
    monkeypatch.setattr(validation, "_CHILD", waiting + validation._CHILD)
    return path


@pytest.fixture
def consumer(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[Consumer]:
    bench.scene.publish(SORT, PAY, LOOK)
    monkeypatch.setattr(inbox, "RETRY_MS", 0)
    consumer = Consumer(bench.store.connection, name="one")
    yield consumer
    consumer.close()


def step_until(consumer: Consumer, is_so: Callable[[], bool]) -> None:
    def stepped() -> bool:
        consumer.step(0.01)
        return is_so()

    wait_until(stepped)


def pending(box: Inbox) -> list[Any]:
    found: list[Any] = box.redis.xpending_range(box.key, inbox.GROUP, "-", "+", 100)
    return found


def test_other_entries_are_admitted_while_a_child_judges_one(bench: Bench, consumer: Consumer, gate: Path) -> None:
    """faults 12"""
    mine, other = Inbox(bench), Inbox(bench, "umbrella")
    heavy = mine.add(scope="talk", turn="heavy", calls=[pay(0), HEAVY])
    for box in (mine, other):
        box.add(scope="talk", turn="light", calls=[pay(1)])
    for _ in range(10):
        consumer.step(0.01)

    assert consumer.admitted == 2
    assert [one["message_id"] for one in pending(mine)] == [heavy]
    gate.touch()
    step_until(consumer, lambda: consumer.admitted == 3)
    assert pending(mine) == []
    assert bench.admitted == 4
    assert consumer.quarantined == 0


def test_heavy_entries_of_one_tenant_are_all_admitted_one_after_the_other(
    bench: Bench, consumer: Consumer, gate: Path
) -> None:
    """faults 12"""
    mine, other = Inbox(bench), Inbox(bench, "umbrella")
    for number in range(4):
        mine.add(scope="talk", turn=f"heavy-{number}", calls=[HEAVY])
    refused = other.add(scope="talk", turn="heavy", calls=[WRONG, pay(1)])
    for _ in range(20):  # each look hands them out again, and none of that counts
        consumer.step(0.01)
    gate.touch()
    step_until(consumer, lambda: consumer.admitted == 5)

    assert consumer.quarantined == 0
    assert bench.admitted == 6
    [answer] = [one for one in other.answers(refused) if one.get("state") == "refused"]
    assert "$.a[150000]" in answer["error"]


def test_an_entry_whose_consumer_stops_meanwhile_is_dealt_with_by_the_next_one(
    bench: Bench, consumer: Consumer, gate: Path
) -> None:
    """faults 12"""
    mine = Inbox(bench)
    mine.add(scope="talk", turn="heavy", calls=[HEAVY])
    step_until(consumer, lambda: bool(pending(mine)))
    consumer.close()
    gate.touch()
    successor = Consumer(bench.store.connection, name="one")
    step_until(successor, lambda: successor.admitted == 1)
    successor.close()

    assert bench.admitted == 1
    assert pending(mine) == []
