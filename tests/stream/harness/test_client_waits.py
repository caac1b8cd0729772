"""Waiting: until all is at rest, as each comes to rest, until a limit; over restarts, and from another process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.support.processes.processes import Child
from tests.support.servers.proxy import FaultProxy
from tests.support.servers.redis_server import RealServer
from tests.support.stream.harness import PAY, Bench, call, calls
from tests.support.wait import wait_until
from toolonce.store.connections import waiting
from toolonce.store.connections.connection import Connection, Patience
from toolonce.store.model.errors import StoreUnavailable
from toolonce.store.model.outcomes import Outcome
from toolonce.store.model.states import State
from toolonce.store.operations.runs import progress
from toolonce.stream.harness.batch import Batch
from toolonce.stream.harness.client import Client


def subscribers(bench: Bench, batch: Batch) -> int:
    channel = batch._channels[0]
    return dict(bench.store.redis.pubsub_numsub(channel))[channel]


def waiting_on(bench: Bench, batch: Batch, pool: ThreadPoolExecutor) -> Future[tuple[Outcome, ...]]:
    """Start a wait, and return once it is listening."""
    future = pool.submit(batch.wait, 20)
    wait_until(lambda: subscribers(bench, batch), description="the wait is subscribed")
    return future


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(40) as opened:
        yield opened


def test_a_wait_ends_when_the_last_call_comes_to_rest(bench: Bench, pool: ThreadPoolExecutor) -> None:
    batch = bench.client.submit_calls(calls(1, 2), turn_id="t")
    future = waiting_on(bench, batch, pool)
    bench.run_next("one")
    assert not future.done()
    bench.run_next("two")

    assert [outcome.value for outcome in future.result(10)] == ["one", "two"]


def test_a_wait_limit_is_still_running_and_no_error(bench: Bench) -> None:
    batch = bench.client.submit_calls(calls(1), turn_id="t")
    bench.scene.take()

    [outcome] = batch.wait(0.05)
    assert outcome.state is State.RUNNING
    assert outcome.pending
    assert batch.any_pending
    assert "still running" in batch.for_user()[0]
    assert "do not say that it succeeded" in batch.for_model()[0]


def test_a_wait_that_was_given_up_is_picked_up_in_another_process(bench: Bench) -> None:
    batch = bench.client.submit_calls(calls(1, 2), turn_id="t")
    assert all(outcome.pending for outcome in batch.wait(0.01))
    text = (
        "from toolonce.stream import Client\n"
        f"client = Client({bench.url!r}, scope='tenant-1/talk-1', namespace={bench.namespace!r})\n"
        "batch = client.batch('t')\n"
        "print('picked up', len(batch.outcomes), flush=True)\n"
        "print([outcome.value for outcome in batch.wait(20)], flush=True)\n"
        "client.close()\n"
    )
    with Child(sys.executable, "-c", text) as child:
        child.wait_for_line("picked up 2")
        bench.run_all(["one", "two"])
        child.wait_for_line(r"\['one', 'two'\]")
        assert child.wait() == 0


def test_outcomes_are_given_in_the_order_in_which_calls_come_to_rest_and_replies_in_call_order(bench: Bench) -> None:
    batch = bench.client.submit_calls(calls(1, 2, 3), turn_id="t")
    runs = [bench.scene.take() for _ in range(3)]
    arriving = batch.as_completed(10)
    order = []
    for place in (2, 0, 1):
        bench.scene.settle(runs[place], place)
        order.append(next(arriving).position)

    assert order == [2, 0, 1]
    assert next(arriving, None) is None
    assert [message["tool_call_id"] for message in batch.replies("openai-chat")] == ["call_0", "call_1", "call_2"]


def test_progress_of_a_running_handler_is_told_while_it_runs(bench: Bench) -> None:
    batch = bench.client.submit_calls(calls(1), turn_id="t")
    run = bench.scene.take()
    events = batch.events(10)
    assert next(events).state is State.QUEUED
    assert next(events).state is State.RUNNING
    bench.scene.run(progress(bench.scene.space, run, 0.25, "a quarter"))

    told = next(event for event in events if "progress" in event.marks)
    assert told.marks["progress"] == {"fraction": 0.25, "message": "a quarter"}
    bench.scene.settle(run, "all")
    [last] = events
    assert (last.value, last.marks) == ("all", {})


def test_an_unknown_call_ends_the_wait_and_forbids_to_claim_success(bench: Bench, pool: ThreadPoolExecutor) -> None:
    run = bench.scene.unknown("x", turn_id="t", scope="tenant-1/talk-1", of=PAY)
    batch = bench.client.batch("t")

    [outcome] = batch.wait(5)
    assert (outcome.key, outcome.state, outcome.settled) == (run.call, State.UNKNOWN, False)
    assert "Do not say that it succeeded" in batch.for_model()[0]
    assert "could not confirm" in batch.for_user()[0]


def test_forty_waiters_share_one_connection(bench: Bench, pool: ThreadPoolExecutor) -> None:
    batches = [bench.client.submit_calls(calls(n), turn_id=f"t{n}") for n in range(40)]
    futures = [pool.submit(batch.wait, 20) for batch in batches]
    wait_until(lambda: all(subscribers(bench, batch) for batch in batches), description="all are subscribed")
    lines = [line for line in bench.store.redis.client_list() if int(line["sub"]) >= 40]
    assert [line["sub"] for line in lines] == ["40"]
    bench.run_all(range(40))

    assert sorted(future.result(10)[0].value for future in futures) == list(range(40))


def test_many_waiters_on_one_turn_are_all_told(bench: Bench, pool: ThreadPoolExecutor) -> None:
    bench.client.submit_calls(calls(1), turn_id="t")
    futures = [pool.submit(bench.client.batch("t").wait, 20) for _ in range(10)]
    bench.run_next("done")

    assert [future.result(10)[0].value for future in futures] == ["done"] * 10


def test_a_wait_goes_on_over_a_restart_of_redis(
    own_server: RealServer, namespace: str, pool: ThreadPoolExecutor
) -> None:
    bench = Bench(own_server.url, namespace, PAY)
    batch = bench.client.submit_calls(calls(1), turn_id="t")
    future = waiting_on(bench, batch, pool)
    own_server.restart()
    bench.run_next("after")

    assert future.result(20)[0].value == "after"
    bench.close()


def test_who_waits_without_a_limit_is_told_when_redis_is_gone(
    own_server: RealServer, namespace: str, pool: ThreadPoolExecutor
) -> None:
    bench = Bench(own_server.url, namespace, PAY)
    impatient = Connection(own_server.url, namespace=namespace, patience=Patience(0.5, 0.5))
    client = Client(impatient, scope="tenant-1/talk-1")
    batch = client.submit_calls(calls(1), turn_id="t")
    future = pool.submit(batch.wait)
    wait_until(lambda: subscribers(bench, batch), description="the wait is subscribed")
    own_server.kill9()

    with pytest.raises(StoreUnavailable):
        future.result(30)
    assert batch.any_pending  # and nothing is said of how the call ended
    client.close()
    impatient.close()
    bench.close()


def test_what_ends_while_the_line_is_down_is_told_once_it_is_back(
    redis_server: RealServer, namespace: str, pool: ThreadPoolExecutor
) -> None:
    bench = Bench(redis_server.url, namespace, PAY)
    with FaultProxy(redis_server.socket) as proxy:
        client = bench.another_client(url=proxy.url)
        batch = client.submit_calls(calls(1), turn_id="t")
        future = waiting_on(bench, batch, pool)
        proxy.cut()
        bench.run_next("meanwhile")

        assert future.result(20)[0].value == "meanwhile"
        client.close()
    bench.close()


def test_a_line_that_died_without_a_word_is_noticed(
    redis_server: RealServer, namespace: str, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "SILENCE_S", 0.2)
    bench = Bench(redis_server.url, namespace, PAY)
    with FaultProxy(redis_server.socket) as proxy:
        client = bench.another_client(url=proxy.url)
        batch = client.submit_calls(calls(1), turn_id="t")
        future = waiting_on(bench, batch, pool)
        proxy.stall()
        bench.run_next("unheard")  # its wake-up is stuck in the dead line for good
        wait_until(lambda: client.wakeups().losses, description="the dead line is given up")
        proxy.resume()

        assert future.result(20)[0].value == "unheard"
        client.close()
    bench.close()


def test_a_quiet_line_is_kept(bench: Bench, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "SILENCE_S", 0.05)
    batch = bench.client.submit_calls(calls(1), turn_id="t")
    future = waiting_on(bench, batch, pool)
    wait_until(lambda: bench.client.wakeups().pongs > 2, description="the line was asked and answered")
    bench.run_next("late")

    assert future.result(10)[0].value == "late"
    assert bench.client.wakeups().losses == 0


def test_a_call_found_by_its_intent_key_is_waited_for_in_its_own_turn(bench: Bench, pool: ThreadPoolExecutor) -> None:
    bench.client.submit_calls([call("pay", "x1", n=5)], turn_id="t1", intent="invoice-5")
    regenerated = bench.client.submit_calls(
        [call("look", "y", 0), call("pay", "x2", 1, n=5)], turn_id="t2", intent={1: "invoice-5"}
    )
    future = waiting_on(bench, regenerated, pool)
    bench.run_all(["paid", "looked"])

    outcomes = future.result(10)
    assert [(outcome.value, outcome.call_id) for outcome in outcomes] == [("looked", "y"), ("paid", "x2")]
