"""Calls of one turn that come one by one: who says which call it is, and what holds across them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.store.scene import spec
from tests.support.stream.harness import LOOK, PAY, Bench, call, calls
from tests.support.wait import wait_until
from toolonce.store.model.errors import CallIdMissing, TurnIdMissing
from toolonce.store.model.outcomes import Outcome
from toolonce.store.model.states import State
from toolonce.store.operations.runs import NotRun
from toolonce.stream.harness.async_client import AsyncClient

Ask = Callable[..., Outcome]


@pytest.fixture(params=["blocking", "asyncio"])
def ask(request: pytest.FixtureRequest, bench: Bench) -> Ask:
    """``client.call`` of either client, which waits for nothing unless a test says so."""

    async def asked(name: str, arguments: Any, **more: Any) -> Outcome:
        async with AsyncClient(bench.url, scope="tenant-1/talk-1", namespace=bench.namespace) as client:
            return await client.call(name, arguments, **more)

    def ask_now(name: str, arguments: Any, *, timeout: float | None = 0, **more: Any) -> Outcome:
        if request.param == "blocking":
            return bench.client.call(name, arguments, timeout=timeout, **more)
        return asyncio.run(asked(name, arguments, timeout=timeout, **more))

    return ask_now


def test_a_single_call_is_run_once_and_a_repeat_is_told_its_outcome(bench: Bench, ask: Ask) -> None:
    first = ask("pay", {"n": 1}, call_id="c1", turn_id="t1")
    bench.run_next("paid")
    again = ask("pay", {"n": 1}, call_id="c1", turn_id="t1", timeout=10)

    assert (first.state, again.value, again.key) == (State.QUEUED, "paid", first.key)
    assert bench.admitted == 1
    assert bench.client.batch("t1").outcomes[0].value == "paid"


def test_it_is_the_same_call_as_in_a_batch(bench: Bench, ask: Ask) -> None:
    alone = ask("pay", {"n": 1}, call_id="c1", turn_id="t1")
    [inside] = bench.client.submit_calls([call("pay", "c1", n=1)], turn_id="t1").outcomes
    assert (inside.key, bench.admitted) == (alone.key, 1)


def test_a_call_that_waits_gets_its_outcome(bench: Bench) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(bench.client.call, "pay", {"n": 1}, call_id="c1", turn_id="t1")
        wait_until(lambda: bench.admitted == 1, description="the call is admitted")
        bench.run_next("paid")
        assert waiting.result(30).result_or_raise() == "paid"


@pytest.mark.parametrize("given", [{}, {"call_id": None}, {"call_id": ""}, {"occurrence": 2}, {"intent": None}])
def test_a_call_without_id_and_intent_is_refused_before_anything_is_stored(
    bench: Bench, ask: Ask, given: dict[str, Any]
) -> None:
    with pytest.raises(CallIdMissing, match=r"give call_id, .*"):
        ask("pay", {"n": 1}, turn_id="t1", **given)
    assert bench.admitted == 0


@pytest.mark.parametrize("given", [{}, {"turn_id": ""}, {"turn_id": "  "}])
def test_a_call_without_turn_and_intent_is_refused(bench: Bench, ask: Ask, given: dict[str, Any]) -> None:
    with pytest.raises(TurnIdMissing, match="turn_id"):
        ask("pay", {"n": 1}, call_id="c1", **given)
    assert bench.admitted == 0


def test_an_intent_key_alone_is_enough_whatever_turn_asks_again(bench: Bench, ask: Ask) -> None:
    first = ask("pay", {"n": 1}, intent="order-7")
    again = ask("pay", {"n": 1}, intent="order-7", call_id="other", turn_id="t9")
    assert (first.key, bench.admitted) == (again.key, 1)


def test_the_same_id_again_is_a_repeat_and_a_further_call_says_which_one_it_is(bench: Bench, ask: Ask) -> None:
    first = ask("pay", {"n": 1}, call_id="c1", turn_id="t1")
    other = ask("pay", {"n": 2}, call_id="c1", turn_id="t1")
    second = ask("pay", {"n": 2}, call_id="c1", turn_id="t1", occurrence=2)
    repeat = ask("pay", {"n": 2}, call_id="c1", turn_id="t1", occurrence=2)

    assert other.conflict
    assert second.key == repeat.key != first.key
    assert bench.admitted == 2
    both = [call("pay", "c1", 0, n=1), call("pay", "c1", 1, n=2)]
    assert [outcome.key for outcome in bench.client.submit_calls(both, turn_id="t1").outcomes] == [
        first.key,
        second.key,
    ]


@pytest.mark.parametrize(
    "given", [{"occurrence": 0}, {"occurrence": True}, {"occurrence": 1.0}, {"occurrence": 2, "intent": "i"}]
)
def test_an_occurrence_that_means_nothing_is_refused(bench: Bench, ask: Ask, given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="occurrence"):
        ask("pay", {"n": 1}, call_id="c1", turn_id="t1", **given)
    assert bench.admitted == 0


def test_ordered_calls_that_come_one_by_one_run_in_their_order(bench: Bench, ask: Ask) -> None:
    asked = [ask("pay", {"n": n}, call_id=f"c{n}", turn_id="t1", ordered=True) for n in range(3)]
    free = ask("pay", {"n": 9}, call_id="c9", turn_id="t2", ordered=True)

    assert [outcome.state for outcome in asked] == [State.QUEUED, State.HELD, State.HELD]
    assert free.state is State.QUEUED
    assert bench.scene.take().call == asked[0].key
    assert bench.scene.take().call == free.key
    assert ask("pay", {"n": 1}, call_id="c1", turn_id="t1", ordered=True).marks == {"reason": "order"}


def test_a_call_alone_waits_for_the_ordered_calls_of_its_turn_that_came_as_a_batch(bench: Bench, ask: Ask) -> None:
    batch = bench.client.submit_calls(calls(1, 2), turn_id="t1", ordered=True)
    last = ask("pay", {"n": 3}, call_id="c3", turn_id="t1", ordered=True)
    assert last.state is State.HELD
    assert bench.run_all(["a", "b", "c"]) == [*(outcome.key for outcome in batch.outcomes), last.key]


def test_a_tool_that_comes_after_another_waits_for_its_calls_that_came_before(bench: Bench, ask: Ask) -> None:
    bench.scene.publish(PAY, LOOK, spec("ship", after=("pay",)))
    paid = ask("pay", {"n": 1}, call_id="c1", turn_id="t1")
    shipped = ask("ship", {}, call_id="c2", turn_id="t1")
    assert (shipped.state, shipped.marks) == (State.HELD, {"reason": "order"})
    bench.scene.fail(bench.scene.take())
    refused = ask("ship", {}, call_id="c2", turn_id="t1", timeout=10)

    assert refused.state is State.REFUSED
    assert refused.failure is not None
    assert refused.failure.code == "predecessor"
    assert ask("pay", {"n": 1}, call_id="c1", turn_id="t1").key == paid.key


def test_the_most_calls_at_once_hold_across_calls_that_come_one_by_one(bench: Bench, ask: Ask) -> None:
    bench.scene.publish(PAY, spec("look", "read", concurrency=1))
    asked = [ask("look", {}, call_id=f"c{n}", turn_id="t1") for n in range(2)]
    assert bench.scene.take().call == asked[0].key
    answer = bench.scene.claim(bench.scene.queued_jobs()[0])
    assert isinstance(answer, NotRun), answer


def test_unusable_arguments_of_a_single_call_are_a_stored_refusal(ask: Ask) -> None:
    refused = ask("pay", {"n": "one"}, call_id="c1", turn_id="t1")
    assert refused.state is State.REFUSED
    assert refused.failure is not None
    assert refused.failure.code == "invalid_arguments"
