"""Calls that go the usual way are stored and moved in fewer steps: nobody can tell from what is stored or shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.store.scene import Scene, spec
from toolonce.ops.metrics.events import read_entry
from toolonce.store.model.outcomes import Failure
from toolonce.store.model.states import State
from toolonce.store.operations.admission import NewCall
from toolonce.store.operations.recovery import purge

READ = spec("look", "read", queue="reads", deadline_ms=5_000)
OF_TURN = {"turn", "turn_key", "admitted_by"}
TIMES = {"admitted_at", "changed_at", "deadline_at"}


def all_kinds(scene: Scene, turn_id: str) -> list[NewCall]:
    """Calls that have little and much in common, usual ones and others among them."""
    made: list[dict[str, Any]] = [
        {"call_id": "a", "arguments": {"n": 1}, "echo": {"signature": "x"}},
        {"call_id": "b", "arguments": {"n": 2}},
        {"call_id": "c", "arguments": {"text": "y" * 300}},
        {"call_id": "d", "arguments": {"n": 3}, "of": READ},
        {"call_id": "e", "arguments": {"n": 4}, "trace": "00-1"},
        {"call_id": "f", "arguments": {"n": 5}, "held": "approval"},
        {"call_id": "g", "arguments": {"n": 6}, "refusal": Failure("unknown_tool", "no such tool")},
        {"call_id": "h", "arguments": {"n": 7}, "kind": "custom"},
        {"call_id": "i", "arguments": {"n": 8}, "lanes": ("one",)},
        {"call_id": "j", "arguments": {"n": 9}, "trace": "00-2"},
        {"call_id": "k", "arguments": {"n": 10}, "secret": True, "key_id": "k1"},
        {"call_id": "l", "arguments": {"n": 11}, "of": READ},
        {"call_id": "m", "arguments": {"n": 12}},
    ]
    return [scene.call(**one, turn_id=turn_id, position=at) for at, one in enumerate(made)]


def stored(scene: Scene, call: NewCall) -> dict[str, Any]:
    record: dict[str, Any] = scene.store.redis.hgetall(scene.space.record(call.identity.key))
    admitted_at = int(record["admitted_at"])
    since = {name: int(record[name]) - admitted_at for name in TIMES & record.keys()}
    return {name: value for name, value in record.items() if name not in OF_TURN} | since


def job(scene: Scene, call: NewCall) -> list[str | None]:
    """Names of its fields, and the values of those that are text and no time."""
    key = scene.space.rq_job(call.identity.idempotency_key)
    values: list[str | None] = scene.store.redis.hmget(key, "origin", "description", "status", "timeout", "result_ttl")
    return sorted(scene.store.redis.hkeys(key)) + values


def test_a_call_is_stored_the_same_alone_and_among_others_of_its_turn(scene: Scene) -> None:
    together, alone = all_kinds(scene, "together"), all_kinds(scene, "alone")
    scene.admit(*together, turn=scene.turn("together", scope="one"))
    for call in alone:
        scene.admit(call, turn=scene.turn("alone", scope="two"))
    for one, other in zip(together, alone, strict=True):
        differs = {"scope"} if one.call_id != "i" else {"scope", "state", "reason", "deadline_at"}  # its lane is taken
        mine, theirs = stored(scene, one), stored(scene, other)
        assert {name: value for name, value in mine.items() if name not in differs} == {
            name: value for name, value in theirs.items() if name not in differs
        }
        if one.call_id not in ("g", "i"):
            assert job(scene, one) == job(scene, other) != [None] * 5


def test_what_admission_answers_is_what_the_store_tells(scene: Scene) -> None:
    calls = all_kinds(scene, "turn")
    admitted = scene.admit(*calls)
    assert scene.lookup(*calls) == tuple(replace(one, replayed=one.settled) for one in admitted)


def test_calls_of_one_turn_are_taken_in_their_order(scene: Scene) -> None:
    calls = [scene.call(f"c{n}", {"n": n, "long": "x" * (n % 3) * 100}, position=n) for n in range(25)]
    scene.admit(*calls)
    assert [scene.take().call for _ in calls] == [call.identity.key for call in calls]


@pytest.mark.parametrize("succeeds", [True, False])
def test_a_history_that_is_not_stored_is_the_one_that_is_written_out_later(scene: Scene, succeeds: bool) -> None:
    histories = []
    run = scene.start()
    histories.append(scene.record(run.call).history)
    scene.settle(run, 1, state=State.SUCCEEDED if succeeds else State.FAILED)
    histories.append(scene.record(run.call).history)
    assert not scene.store.redis.exists(f"{scene.space.root}history:{run.call}")
    assert [line["op"] for line in histories[1]] == ["admit", "claim", "settle"]
    assert histories[1][:2] == histories[0]
    if not succeeds:
        scene.retry(run.call)
        *before, last = scene.record(run.call).history
        assert (tuple(before), last["op"]) == (histories[1], "retry")


def test_the_stream_of_events_has_each_line_of_a_history_in_fewer_entries(real_scene: Scene) -> None:
    calls = [real_scene.call(name, position=at) for at, name in enumerate("abc")]
    real_scene.admit(*calls)
    for _ in calls:
        real_scene.settle(real_scene.take(), 1)
    entries = real_scene.store.connection.command("XRANGE", real_scene.space.events, "-", "+")  # type: ignore[union-attr]
    events = [event for entry in entries for event in read_entry(entry)]
    assert (len(entries), len(events)) == (7, 9)
    for call in calls:
        lines = [event.facts for event in events if event.call == call.identity.key]
        assert lines == list(real_scene.record(call.identity.key).history)


def test_what_a_first_attempt_left_is_gone_after_the_second(scene: Scene) -> None:
    run = scene.start(of=READ)
    scene.retry_later(run, delay_ms=0)
    again = scene.take("reads")
    scene.settle(again, "fine")
    fields = scene.record(run.call).fields
    assert (fields.error, fields.result, fields.attempt) == ("", '"fine"', 2)


def test_a_late_word_brings_no_history_back_to_a_call_that_was_forgotten(scene: Scene) -> None:
    run = scene.start()
    scene.settle(run, 1)
    scene.run(purge(scene.space, [run.call]))
    scene.fail(run)
    assert [line["op"] for line in scene.record(run.call).history] == ["evidence"]
