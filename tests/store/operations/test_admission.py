"""A turn is admitted whole and once; what is stored already is answered from the store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.store.scene import Scene, spec
from toolonce.store.model.errors import CorruptRecord, StoreFull
from toolonce.store.model.keys import Namespace
from toolonce.store.model.outcomes import Failure
from toolonce.store.model.states import State
from toolonce.store.operations import admission, queries
from toolonce.store.operations.admission import Identified, InboxEntry
from toolonce.store.operations.tools import publish, published


def test_a_turn_of_ten_is_admitted_in_one_step_and_in_call_order(scene: Scene) -> None:
    calls = [scene.call(f"call-{at}", position=at) for at in range(10)]
    outcomes = scene.admit(*calls)
    assert [(outcome.position, outcome.state) for outcome in outcomes] == [(at, State.QUEUED) for at in range(10)]
    assert scene.queued_jobs() == [outcome.idempotency_key for outcome in outcomes]
    assert scene.run(queries.turn(scene.space, scene.turn().key)) == outcomes


def test_lookup_answers_in_order_with_what_is_stored_and_none_for_the_rest(scene: Scene) -> None:
    run = scene.start("a")
    scene.settle(run, 7)
    scene.submit("b")
    first, second, third = scene.lookup(*(scene.call(name) for name in "abc"))
    assert (first and first.value, first and first.replayed) == (7, True)
    assert second
    assert (second.pending, second.replayed) == (True, False)
    assert third is None


def test_a_later_submission_is_answered_from_the_store_and_runs_nothing(scene: Scene) -> None:
    run = scene.start()
    scene.settle(run, 7)
    (outcome,) = scene.admit(scene.call())
    assert (outcome.value, outcome.replayed) == (7, True)
    assert scene.queued_jobs() == []
    assert scene.stats().counts["admitted"] == 1


def test_a_replay_needs_no_spec_and_ignores_todays(scene: Scene) -> None:
    run = scene.start(of=spec("pay", version="1"))
    scene.settle(run, 7)
    (outcome,) = scene.admit(replace(scene.call(), spec=None, held="no_worker"))
    assert outcome.value == 7
    assert scene.run(published(scene.space)).tools == {}


@pytest.mark.parametrize("change", ["arguments", "tool"])
def test_the_same_call_with_other_content_is_a_conflict_and_its_siblings_go_on(scene: Scene, change: str) -> None:
    scene.submit("a", {"cents": 1})
    other = scene.call("a", {"cents": 2}) if change == "arguments" else scene.call("a", {"cents": 1}, of=spec("delete"))
    conflict, sibling = scene.admit(other, scene.call("b"))
    assert (conflict.conflict, conflict.settled, conflict.value) == (True, True, None)
    assert conflict.failure is not None
    assert conflict.failure.code == "conflict"
    assert sibling.state is State.QUEUED
    assert len(scene.queued_jobs()) == 2


def test_a_conflict_never_shows_the_stored_value(scene: Scene) -> None:
    run = scene.start("a", {"cents": 1})
    scene.settle(run, "secret of the first")
    (looked,) = scene.lookup(scene.call("a", {"cents": 2}))
    (admitted,) = scene.admit(scene.call("a", {"cents": 2}))
    for outcome in (looked, admitted):
        assert outcome is not None
        assert outcome.conflict
        assert outcome.value is None


def test_two_calls_under_one_key_in_one_submission_are_one_call_or_a_conflict(scene: Scene) -> None:
    first, same, other = scene.call("a", {"n": 1}), scene.call("a", {"n": 1}), scene.call("a", {"n": 2})
    for _ in range(2):  # the second time as after a lost reply
        outcomes = scene.admit(first, same, other, request="one")
        assert [outcome.conflict for outcome in outcomes] == [False, False, True]
    assert scene.stats().counts["admitted"] == 1


def test_admission_sent_again_under_its_request_id_is_answered_the_same(scene: Scene) -> None:
    calls = [scene.call("a"), scene.call("b", held="approval")]
    first = scene.admit(*calls, request="one")
    assert scene.admit(*calls, request="one") == first
    assert scene.stats().counts["admitted"] == 2
    assert len(scene.queued_jobs()) == 1


def test_a_rotated_key_causes_no_conflict_and_changes_no_stored_key(scene: Scene) -> None:
    old = scene.call()
    stored = scene.admit(old)[0]
    rotated = replace(old, identity=Identified(old.identity.key, ("f" * 32, *old.identity.fingerprints)))
    (looked,), (admitted,) = scene.lookup(rotated), scene.admit(rotated)
    for outcome in (looked, admitted):
        assert outcome is not None
        assert not outcome.conflict
        assert outcome.idempotency_key == stored.idempotency_key


def test_a_refused_call_is_stored_and_answered_like_any_other(scene: Scene) -> None:
    refusal = Failure("invalid_arguments", "cents: not an integer", {"path": "$.cents"})
    first = scene.admit(scene.call(refusal=refusal))[0]
    (again,) = scene.lookup(scene.call())
    assert again is not None
    assert (first.state, first.failure, first.replayed) == (State.REFUSED, refusal, False)
    assert (again.failure, again.replayed) == (refusal, True)
    assert scene.queued_jobs() == []


def test_a_full_queue_refuses_the_whole_turn_but_answers_what_is_stored(scene: Scene) -> None:
    scene.submit("a")
    scene.submit("b")
    with pytest.raises(StoreFull, match="default"):
        scene.admit(scene.call("c", of=spec("other", queue="empty")), scene.call("d"), queue_limit=2)
    assert scene.stats().counts["admitted"] == 2
    assert scene.admit(scene.call("a"), queue_limit=2)[0].state is State.QUEUED


def test_the_same_call_of_another_scope_or_turn_is_another_call(scene: Scene) -> None:
    keys = {scene.submit("1", {"q": "z"}, scope=scope, turn_id=turn) for scope in ("t1", "t2") for turn in ("x", "y")}
    assert len(keys) == len(scene.queued_jobs()) == 4


def test_exact_integers_go_in_and_come_out(scene: Scene) -> None:
    number = 9_007_199_254_740_993_123
    run = scene.start("a", {"id": number})
    assert str(number) in run.arguments
    scene.settle(run, {"id": number})
    (outcome,) = scene.lookup(scene.call("a", {"id": number}))
    assert outcome is not None
    assert outcome.value == {"id": number}


def plant_entry(scene: Scene) -> InboxEntry:
    stream, redis = scene.space.inbox("acme"), scene.store.redis
    redis.xgroup_create(stream, "consumers", id="0", mkstream=True)
    entry = redis.xadd(stream, {"calls": "[]"})
    redis.xreadgroup("consumers", "one", {stream: ">"})
    return InboxEntry(stream, "consumers", entry, scene.space.root + "answers:acme:1")


def test_an_inbox_entry_is_acknowledged_in_the_step_that_admits_it(scene: Scene) -> None:
    entry = plant_entry(scene)
    scene.admit(scene.call(), entry=entry)
    assert scene.store.redis.xlen(entry.stream) == 0
    assert scene.store.redis.xpending(entry.stream, "consumers")["pending"] == 0


def test_an_entry_of_a_refused_admission_stays_in_the_inbox(scene: Scene) -> None:
    scene.submit("a")
    entry = plant_entry(scene)
    with pytest.raises(StoreFull):
        scene.admit(scene.call("b"), entry=entry, queue_limit=1)
    assert scene.store.redis.xpending(entry.stream, "consumers")["pending"] == 1


def test_an_entry_that_wants_no_answers_gets_none(scene: Scene) -> None:
    entry = replace(plant_entry(scene), answers="")
    scene.admit(scene.call(), entry=entry)
    scene.settle(scene.take(), 7)
    assert not scene.store.redis.exists("")
    assert not list(scene.store.redis.scan_iter(f"{scene.space.root}answers:*"))


def test_an_inbox_entry_whose_reply_was_lost_is_answered_once(scene: Scene) -> None:
    entry = plant_entry(scene)
    refused = scene.call("b", refusal=Failure("unknown_tool", "no such tool"), position=1)
    for _ in range(2):
        scene.admit(scene.call(), refused, request="one", entry=entry)
    scene.settle(scene.take(), 7)
    answers = [fields for _, fields in scene.store.redis.xrange(entry.answers)]
    assert [(answer.get("id"), answer["state"], answer.get("result")) for answer in answers] == [
        (None, "admitted", None),
        ("b", "refused", ""),
        ("a", "succeeded", "7"),
    ]


def test_waiters_of_a_turn_are_told_when_a_call_comes_to_rest(real_scene: Scene) -> None:
    listener = real_scene.store.redis.pubsub(ignore_subscribe_messages=True)
    listener.subscribe(real_scene.space.wake_channel(real_scene.turn().key))
    listener.get_message(timeout=1)
    run = real_scene.start()
    real_scene.settle(run)
    message = listener.get_message(timeout=5)
    listener.close()
    assert message is not None
    assert message["data"] == run.call


@pytest.mark.parametrize("name", ["a.b", "rq", "", "a:b", "a b", "x" * 65])
def test_a_namespace_can_share_no_key_with_another_or_with_rq(name: str) -> None:
    """RQ's queues are named <namespace>.<queue>: with dots allowed, `a` + `b.c` and `a.b` + `c` would be one queue."""
    with pytest.raises(ValueError, match="namespace"):
        Namespace(name)


def test_calls_that_were_judged_by_other_specs_are_not_stored(scene: Scene) -> None:
    version, _ = scene.run(publish(scene.space, [spec("pay")]))
    outdated = admission.Request("request", specs_version=version - 1)

    assert scene.run(admission.admit(scene.space, scene.turn(), [scene.call()], request=outdated)) is None

    assert scene.lookup(scene.call()) == (None,)
    assert scene.queued_jobs() == []
    scene.admit(scene.call(), specs_version=version)
    assert len(scene.queued_jobs()) == 1


def test_what_is_stored_is_answered_whatever_specs_are_published(scene: Scene) -> None:
    scene.settle(scene.start("a"), 7)
    scene.run(publish(scene.space, [spec("pay", version="2")]))
    (outcome,) = scene.admit(scene.call("a"), specs_version=0)
    assert (outcome.value, outcome.replayed) == (7, True)


@pytest.mark.parametrize("damage", ["", "{", "5 6", "\n", "no JSON", "[" * 100_000])
def test_a_record_that_cannot_be_read_is_an_error_and_never_a_shorter_turn(scene: Scene, damage: str) -> None:
    run = scene.start("a")
    scene.settle(run, 7)
    scene.store.redis.hset(f"{scene.space.root}call:{run.call}", "result", damage)
    if damage:
        with pytest.raises(CorruptRecord, match=run.call):
            scene.lookup(scene.call("a"), scene.call("b"))
        scene.store.redis.hset(
            f"{scene.space.root}call:{run.call}", mapping={"result": "7", "marks": "[1]", "forgotten": "1"}
        )
        with pytest.raises(CorruptRecord, match=run.call):
            scene.lookup(scene.call("a"))
    else:
        assert [found and found.value for found in scene.lookup(scene.call("a"), scene.call("b"))] == [None, None]
