"""`batch.events()`: how calls stand and each change, taken up again anywhere; a question for a person is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.store.scene import spec
from tests.support.stream.harness import LOOK, PAY, Bench, call, calls
from toolonce.store.model.outcomes import Outcome
from toolonce.store.model.states import State
from toolonce.store.operations.runs import progress
from toolonce.stream.harness.async_client import AsyncClient
from toolonce.stream.harness.client import Client

ASKS = spec("wire", approval="always")


def told(outcomes: Iterable[Outcome]) -> list[tuple[str | None, str]]:
    return [(outcome.call_id, str(outcome.marks.get("reason", outcome.state))) for outcome in outcomes]


@pytest.fixture
def other(bench: Bench) -> Client:
    """A harness that starts later."""
    bench.scene.publish(PAY, LOOK, ASKS)
    return bench.another_client()


def test_another_process_takes_the_events_up_where_the_calls_stand(bench: Bench, other: Client) -> None:
    first = bench.client.submit_calls(calls(1, 2), turn_id="t")
    seen = list(first.events(0))
    run = bench.scene.take()
    bench.scene.run(progress(bench.scene.space, run, 0.5, "half"))
    events = other.batch("t").events(20)
    resumed = [next(events), next(events)]
    bench.scene.settle(run, "one")
    bench.run_next("two")

    assert told(seen) == [("call_0", "queued"), ("call_1", "queued")]
    assert [outcome.marks.get("progress", {}).get("message") for outcome in resumed] == ["half", None]
    assert [outcome.value for outcome in events if outcome.settled] == ["one", "two"]


def test_what_a_harness_was_told_of_is_not_told_again(bench: Bench) -> None:
    batch = bench.client.submit_calls(calls(1, 2), turn_id="t")
    seen = list(batch.events(0))
    bench.run_next("one")
    assert told(bench.client.batch("t").events(0, after=seen)) == [("call_0", "succeeded")]


def test_calls_that_came_one_by_one_each_have_their_events(bench: Bench) -> None:
    """All of them have the position 0."""
    for n in range(3):
        bench.client.call("pay", {"n": n}, call_id=f"c{n}", turn_id="t", timeout=0)
    bench.run_all("abc")
    batch = bench.client.batch("t")
    assert told(batch.events(5)) == [(f"c{n}", "succeeded") for n in range(3)]
    assert sorted(outcome.value for outcome in batch.as_completed(5)) == ["a", "b", "c"]


def test_an_approval_that_is_asked_for_is_told_and_so_is_its_answer(bench: Bench, other: Client) -> None:
    batch = other.submit_calls([call("wire", "w1")], turn_id="t")
    events = batch.events(20)
    question = next(events)
    assert told([question]) == [("w1", "approval")]
    assert batch.held == (question,)
    bench.client.approve(question, actor="maria")
    assert told([next(events)]) == [("w1", "queued")]
    bench.run_next("sent")
    assert [outcome.value for outcome in events] == ["sent"]


def test_a_call_that_its_worker_holds_for_an_approval_is_told_at_once(bench: Bench) -> None:
    batch = bench.client.submit_calls(calls(1), turn_id="t")
    events = batch.events(60, until_held=True)
    assert told([next(events)]) == [("call_0", "queued")]
    run = bench.scene.take()
    assert told([next(events)]) == [("call_0", "running")]
    with ThreadPoolExecutor(1) as pool:
        rest = pool.submit(lambda: told(events))
        assert bench.scene.release(run, held="approval") == "held"
        assert rest.result(30) == [("call_0", "approval")]


def test_events_end_where_only_people_can_go_on(bench: Bench, other: Client) -> None:
    batch = other.submit_calls([call("wire", "w1"), call("pay", "p1", 1, n=1)], turn_id="t")
    assert not batch.is_held  # the other one runs
    bench.run_next("paid")
    assert told(batch.events(20, until_held=True))[-1] == ("p1", "succeeded")
    assert batch.is_held
    assert told(batch.events(20, until_held=True, after=batch.outcomes)) == []


def test_events_go_on_where_whoever_is_told_approves_at_once(bench: Bench, other: Client) -> None:
    batch = other.submit_calls([call("wire", "w1"), call("wire", "w2", 1)], turn_id="t")
    lines = []
    for outcome in batch.events(20, until_held=True):
        lines += told([outcome])
        if outcome in batch.held:
            other.approve(outcome, actor="policy")
            bench.run_next("sent")
    assert [line for line in lines if line[1] == "succeeded"] == [("w1", "succeeded"), ("w2", "succeeded")]
    assert lines[0] == ("w1", "approval")


def test_a_denied_call_is_told_as_refused(bench: Bench, other: Client) -> None:
    batch = other.submit_calls([call("wire", "w1")], turn_id="t")
    events = batch.events(20)
    other.deny(next(events), actor="maria", reason="too much")
    [last] = events
    assert (last.state, batch.held, batch.is_held) == (State.REFUSED, (), False)


def test_the_async_client_tells_the_same_events(bench: Bench, other: Client) -> None:
    async def main() -> list[tuple[str | None, str]]:
        lines = []
        async with AsyncClient(bench.url, scope="tenant-1/talk-1", namespace=bench.namespace) as client:
            batch = await client.submit_calls([call("wire", "w1"), call("pay", "p1", 1, n=1)], turn_id="t")
            bench.run_next("paid")
            async for outcome in batch.events(20, until_held=True):
                lines += told([outcome])
            seen = batch.outcomes
            await client.approve(batch.held[0], actor="maria")
            bench.run_next("sent")
            async for outcome in (await client.batch("t")).events(20, after=seen):
                lines += told([outcome])
        return lines

    said = asyncio.run(main())
    assert said[0] == ("w1", "approval")
    assert said[-2:] == [("p1", "succeeded"), ("w1", "succeeded")]
