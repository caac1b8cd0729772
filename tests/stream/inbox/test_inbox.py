"""The inbox, by plain Redis commands as a harness in any language sends them; consumed by our consumer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.proxy import FaultProxy
from tests.support.servers.redis_server import RealServer
from tests.support.store.scene import spec
from tests.support.stream.harness import LOOK, PAY, Bench
from tests.support.stream.inbox import Inbox
from tests.support.stream.transcripts import CONFORMANCE, RecordedStream, transcripts
from tests.support.wait import wait_until
from toolonce.store.connections.connection import Connection
from toolonce.store.model.states import State
from toolonce.stream.inbox import consumer as inbox
from toolonce.stream.inbox.consumer import GROUP, Consumer


def pay(number: int, call_id: str = "a") -> dict[str, Any]:
    return {"name": "pay", "arguments": {"n": number}, "id": call_id}


@pytest.fixture
def box(bench: Bench) -> Inbox:
    return Inbox(bench)


@pytest.fixture
def consumer(bench: Bench) -> Iterator[Consumer]:
    yield from consuming(bench.store.connection)


def consuming(connection: Connection, name: str = "one", **more: Any) -> Iterator[Consumer]:
    consumer = Consumer(connection, name=name, **more)
    yield consumer
    consumer.close()


def test_an_entry_is_admitted_run_and_answered(box: Inbox, consumer: Consumer) -> None:
    entry = box.add(scope="talk", turn="1", calls=[pay(1, "a"), {"name": "look"}])
    assert consumer.step(0.01) == 1
    box.bench.run_all([{"paid": 1}, False])

    admitted, first, second = box.answers(entry)
    assert admitted == {"state": "admitted", "calls": "2", "reply_ids": "{}"}
    assert (first["id"], first["name"], first["state"], first["result"]) == ("a", "pay", "succeeded", '{"paid": 1}')
    assert (second["position"], second["id"], second["result"]) == ("1", "", "false")
    assert box.redis.xlen(box.key) == 0
    assert 0 < box.redis.ttl(f"{{{box.bench.namespace}}}:answers:acme:{entry}") <= 86400


def test_an_entry_that_comes_again_runs_nothing_and_is_answered_the_same(box: Inbox, consumer: Consumer) -> None:
    fields = {"scope": "talk", "turn": "1", "calls": [pay(1)]}
    first = box.add(**fields)
    consumer.step(0.01)
    box.bench.run_next("done")
    again = box.add(**fields)
    consumer.step(0.01)

    assert box.bench.admitted == 1
    assert box.answers(again) == box.answers(first)


def test_an_entry_that_comes_again_while_its_call_runs_is_told_how_it_ends(box: Inbox, consumer: Consumer) -> None:
    entries = [box.add(scope="talk", turn="1", calls=[pay(1)]) for _ in range(3)]
    consumer.step(0.01)
    run = box.bench.scene.take()
    assert [len(box.answers(entry)) for entry in entries] == [1, 1, 1]
    box.bench.scene.settle(run, "once")

    assert [box.answers(entry)[1]["result"] for entry in entries] == ['"once"'] * 3


@pytest.mark.parametrize("stage", ["settled", "running"])
def test_a_call_found_by_its_intent_is_answered_in_the_entrys_own_place(
    box: Inbox, consumer: Consumer, stage: str
) -> None:
    """G6: the model generated the turn again; the same action has another id and another place now."""
    first = box.add(scope="talk", turn="1", calls=[pay(1, "old")], intent={"0": "invoice-17"})
    consumer.step(0.01)
    run = box.bench.scene.take()
    if stage == "settled":
        box.bench.scene.settle(run, "once")
    again = box.add(scope="talk", turn="2", calls=[pay(2, "other"), pay(1, "new")], intent={"1": "invoice-17"})
    consumer.step(0.01)
    if stage == "running":
        box.bench.scene.settle(run, "once")
    box.bench.run_next("two")

    assert [(a["position"], a["id"], a["result"]) for a in box.answers(first)[1:]] == [("0", "old", '"once"')]
    assert {(a["position"], a["id"], a["result"]) for a in box.answers(again)[1:]} == {
        ("0", "other", '"two"'),
        ("1", "new", '"once"'),
    }


def test_a_conflict_is_answered_in_the_entrys_own_place(box: Inbox, consumer: Consumer) -> None:
    box.add(scope="talk", turn="1", calls=[pay(1, "old")], intent={"0": "invoice-17"})
    consumer.step(0.01)
    calls = [pay(2, "other"), {"name": "look", "id": "new"}]
    again = box.add(scope="talk", turn="2", calls=calls, intent={"1": "invoice-17"})
    consumer.step(0.01)

    _, conflict = box.answers(again)
    assert (conflict["state"], conflict["position"], conflict["id"], conflict["name"]) == (
        "conflict",
        "1",
        "new",
        "look",
    )


def test_an_entry_that_comes_again_for_an_unknown_call_hears_of_it_later(box: Inbox, consumer: Consumer) -> None:
    fields = {"scope": "talk", "turn": "1", "calls": [pay(1)]}
    first = box.add(**fields)
    consumer.step(0.01)
    box.bench.scene.settle(box.bench.scene.take(), state=State.UNKNOWN)
    again = box.add(**fields)
    consumer.step(0.01)
    box.bench.scene.resolve(box.answers(first)[1]["call"])

    assert [answer["state"] for answer in box.answers(again)] == ["admitted", "unknown", "succeeded"]
    assert box.answers(again) == box.answers(first)


def test_a_conflict_and_a_refusal_are_answers_with_a_code(box: Inbox, consumer: Consumer) -> None:
    box.add(scope="talk", turn="1", calls=[pay(1)])
    entry = box.add(scope="talk", turn="1", calls=[pay(2), pay("two", "b"), {"name": "nope"}])  # type: ignore[arg-type]
    consumer.step(0.01)

    told = {fields["position"]: fields for fields in box.answers(entry) if "position" in fields}
    assert [told[place]["state"] for place in "012"] == ["conflict", "refused", "refused"]
    codes = [json.loads(told[place]["error"])["code"] for place in "012"]
    assert codes == ["conflict", "invalid_arguments", "unknown_tool"]


def test_the_tenant_is_the_keys_and_never_the_entrys(box: Inbox, consumer: Consumer) -> None:
    box.add(scope="talk", turn="1", calls=[pay(1)])
    other = Inbox(box.bench, "umbrella")
    other.add(scope="talk", turn="1", calls=[pay(1)])
    consumer.step(0.01)
    runs = [box.bench.scene.take() for _ in range(2)]

    stored = [box.bench.scene.record(run.call).fields for run in runs]
    assert {(record.tenant, record.scope) for record in stored} == {
        ("acme", "acme/talk"), ("umbrella", "umbrella/talk")
    }  # fmt: skip
    assert len({run.call for run in runs}) == 2


STREAMS = [t for t in transcripts(CONFORMANCE) if t.answer["calls"] and t.answer["outcome"] == "completed"]
BROKEN = [t for t in transcripts(CONFORMANCE) if t.answer["outcome"] in ("truncated", "failed", "malformed")]


@pytest.mark.parametrize("transcript", STREAMS[::7], ids=lambda t: t.key)
def test_raw_bytes_of_a_provider_give_the_calls_that_are_in_them(
    box: Inbox, consumer: Consumer, transcript: RecordedStream
) -> None:
    entry = box.add(scope="talk", turn="1", **body_fields(transcript))
    consumer.step(0.01)

    names = [fields["name"] for fields in box.answers(entry)[1:]]  # tools that nobody serves: refused at once
    assert box.answers(entry)[0]["calls"] == str(len(transcript.answer["calls"]) + len(transcript.answer["rejected"]))
    assert sorted(names) == sorted(
        call["name"] for call in (*transcript.answer["calls"], *transcript.answer["rejected"])
    )


@pytest.mark.parametrize("transcript", BROKEN[::9], ids=lambda t: t.key)
def test_a_turn_that_did_not_end_properly_is_quarantined_and_runs_nothing(
    box: Inbox, consumer: Consumer, transcript: RecordedStream
) -> None:
    entry = box.add(scope="talk", turn="1", **body_fields(transcript))
    consumer.step(0.01)

    [answer] = box.answers(entry)
    assert answer["state"] == "quarantined"
    assert transcript.answer["outcome"] in json.loads(answer["error"])["message"]
    assert box.bench.admitted == 0


def body_fields(transcript: RecordedStream) -> dict[str, Any]:
    streamed = "0" if transcript.kind == "body" else "1"
    return {"body": transcript.data, "dialect": transcript.dialect, "streamed": streamed}


def test_the_providers_turn_id_will_do_where_there_is_no_step_id(box: Inbox, consumer: Consumer) -> None:
    said = {"id": "resp_7", "object": "response", "status": "completed", "output": [
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "pay", "arguments": '{"n":1}'}]}  # fmt: skip
    for _ in range(2):
        box.add(scope="talk", body=said, dialect="openai-responses", streamed="0")
    consumer.step(0.01)

    assert box.bench.scene.record(box.bench.scene.take().call).fields.turn == "resp_7"
    assert box.bench.admitted == 1


POISON: dict[str, dict[str, Any]] = {
    "no calls": {"scope": "s", "turn": "1"},
    "calls and body": {"turn": "1", "calls": "[]", "body": "x", "dialect": "anthropic"},
    "no turn": {"scope": "s", "calls": [pay(1)]},
    "no JSON": {"turn": "1", "calls": '[{"name": "pay"'},
    "no object in the list": {"turn": "1", "calls": "[5]"},
    "a strange kind": {"turn": "1", "calls": [{"name": "look", "kind": "odd"}]},
    "two lists": {"turn": "1", "calls": "[] []"},
    "no list": {"turn": "1", "calls": '{"name": "pay"}'},
    "an unknown field": {"turn": "1", "calls": [pay(1)], "tenant": "umbrella"},
    "a strange flag": {"turn": "1", "calls": [pay(1)], "ordered": "yes"},
    "too many": {"turn": "1", "calls": [{"name": "look"}] * 1025},
    "no UTF-8": {"turn": b"\xff", "calls": [pay(1)]},
    "calls in no UTF-8": {"turn": "1", "calls": b'[{"name": "\xff"}]'},
    "more fields than a script can take": {f"field{number}": "x" for number in range(10_000)},
    "no dialect": {"turn": "1", "body": "data: {}\n\n"},
    "a dialect that is none": {"turn": "1", "body": "data: {}\n\n", "dialect": "morse"},
    "intent that is not an object": {"turn": "1", "calls": [pay(1)], "intent": "[1]"},
    "intent at no position": {"turn": "1", "calls": [pay(1)], "intent": {"first": "k"}},
    "intent beyond the turn": {"turn": "1", "calls": [pay(1)], "intent": {"1": "k"}},
    "intent without a key": {"turn": "1", "calls": [pay(1)], "intent": {"0": ""}},
    "intent with a number": {"turn": "1", "calls": [pay(1)], "intent": {"0": 7}},
    "sealed with no key of ours": {"turn": "1", "calls": "gAAAAA", "sealed": "1"},
}


@pytest.mark.parametrize("what", POISON)
def test_what_cannot_be_read_is_quarantined_with_the_reason_and_blocks_nobody(
    box: Inbox, consumer: Consumer, what: str
) -> None:
    entry = box.add(**POISON[what])
    good = box.add(scope="talk", turn="good", calls=[pay(1)])
    assert consumer.step(0.01) == 2

    [quarantined] = box.quarantined()
    assert quarantined[:2] == (box.key, entry)
    assert quarantined[2]
    [answer] = box.answers(entry)
    assert json.loads(answer["error"]) == {"code": "quarantined", "message": quarantined[2]}
    assert len(box.answers(good)) == 1
    assert (consumer.admitted, consumer.quarantined) == (1, 1)


def test_what_a_dead_consumer_had_taken_is_taken_over(
    box: Inbox, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "IDLE_MS", 0)
    box.redis.xgroup_create(box.key, GROUP, "0", mkstream=True)
    entry = box.add(scope="talk", turn="1", calls=[pay(1)])
    box.redis.xreadgroup(GROUP, "dead", {box.key: ">"})

    assert consumer.step(0.01) == 1
    assert len(box.answers(entry)) == 1
    assert box.redis.xpending(box.key, GROUP)["pending"] == 0


def test_a_consumer_that_comes_back_goes_on_with_what_it_had_taken(
    box: Inbox, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    box.redis.sadd(f"{{{bench.namespace}}}:inboxes", "acme")
    box.redis.xgroup_create(box.key, GROUP, "0", mkstream=True)
    entry = box.add(scope="talk", turn="1", calls=[pay(1)])
    box.redis.xreadgroup(GROUP, "one", {box.key: ">"})
    monkeypatch.setattr(inbox, "RETRY_MS", 0)
    for consumer in consuming(bench.store.connection, "one"):
        assert consumer.step(0.01) == 1

    assert len(box.answers(entry)) == 1


def test_two_consumers_share_the_work_and_admit_nothing_twice(box: Inbox, bench: Bench) -> None:
    stop = threading.Event()
    consumers = [Consumer(bench.store.connection, name=f"c{n}") for n in range(2)]
    threads = [threading.Thread(target=consumer.run, args=(stop,)) for consumer in consumers]
    for thread in threads:
        thread.start()
    entries = [box.add(scope="talk", turn=str(n), calls=[pay(n)]) for n in range(100)]
    wait_until(lambda: all(box.answers(entry) for entry in entries), 30, "all entries are admitted")
    stop.set()
    for thread in threads:
        thread.join()

    assert bench.admitted == sum(consumer.admitted for consumer in consumers) == 100


def test_an_entry_waits_for_a_worker_that_publishes_tools(
    redis_server: RealServer, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "RETRY_MS", 0)
    bench = Bench(redis_server.url, namespace)
    box = Inbox(bench)
    entry = box.add(scope="talk", turn="1", calls=[pay(1)])
    for consumer in consuming(bench.store.connection):
        assert consumer.step(0.01) == 0
        assert box.answers(entry) == []
        bench.scene.publish(PAY)
        assert consumer.step(0.01) == 1
    assert len(box.answers(entry)) == 1
    bench.close()


def test_a_full_queue_holds_up_no_other_tenant_and_no_other_queue(
    box: Inbox, bench: Bench, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.scene.publish(PAY, spec("slow", queue="slow"))
    consumer.limits["queue_limit"] = 1
    monkeypatch.setattr(inbox, "RETRY_MS", 0)
    full = [box.add(scope="talk", turn=f"s{n}", calls=[{"name": "slow"}]) for n in range(2)]
    others = [box.add(scope="talk", turn="p", calls=[pay(1)])]
    consumer.step(0.01)

    assert [len(box.answers(entry)) for entry in (*full, *others)] == [1, 0, 1]
    assert bench.scene.pop("slow")
    consumer.step(0.01)
    assert len(box.answers(full[1])) == 1


def test_a_lost_reply_to_an_admission_answers_once(redis_server: RealServer, namespace: str) -> None:
    bench = Bench(redis_server.url, namespace, PAY, LOOK)
    box = Inbox(bench)
    with FaultProxy(redis_server.socket) as proxy:
        connection = Connection(proxy.url, namespace=namespace)
        for consumer in consuming(connection):
            entry = box.add(scope="talk", turn="1", calls=[pay(1)])
            proxy.drop_reply_to(entry.encode())  # admission names the entry that it acknowledges
            consumer.step(0.01)
            assert not proxy.armed
        connection.close()
    bench.run_next("done")

    assert [fields["state"] for fields in box.answers(entry)] == ["admitted", "succeeded"]
    assert bench.admitted == 1
    bench.close()
