"""Group 3 of the faults that others met: idempotency keys, stored outcomes, tenants, secrets."""

from __future__ import annotations

import json

import pytest

from tests.support.store.scene import BROKEN, Scene, spec
from toolonce.store.model.identity import call_key, fingerprint
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.states import State
from toolonce.store.operations import runs
from toolonce.store.operations.recovery import Retention, forget
from toolonce.store.operations.runs import NotRun

READ = spec("look", "read")


def test_one_call_however_its_json_is_written(scene: Scene) -> None:
    """O3-01: members in another order gave another key."""
    spellings = ('{"b":{"y":2,"x":1},"a":"é"}', '{ "a" : "\\u00e9", "b" : {"x":1,"y":2} }')
    for spelling in spellings:
        assert not scene.admit(scene.call("a", json.loads(spelling)))[0].conflict
    assert len(scene.queued_jobs()) == 1


def test_a_reused_key_never_returns_the_first_answer_for_another_body_or_operation(scene: Scene) -> None:
    """O3-02: the second operation never ran and nobody was told."""
    note = spec("create_note")
    run = scene.start("c1", {"t": "x"}, of=note)
    scene.settle(run, "first answer")
    for other in (scene.call("c1", {"t": "y"}, of=note), scene.call("c1", {"id": 1}, of=spec("delete_note"))):
        (outcome,) = scene.admit(other)
        assert (outcome.conflict, outcome.value) == (True, None)
    assert scene.queued_jobs() == []


def test_numbers_words_and_texts_are_kept_apart_and_one_is_one(scene: Scene) -> None:
    """O3-03. The entry wants schema-converted pairs to share a key; here identity knows no schema, on purpose:
    validation converts nothing, so that `"12"` is refused where an integer is wanted."""
    prints = {name: fingerprint("t", {"n": value}) for name, value in (("1", 1), ("1.0", 1.0), ("t", True), ("s", "1"))}
    assert prints["1"] == prints["1.0"]
    assert len(set(prints.values())) == 3
    assert fingerprint("t", {"n": "12"}) != fingerprint("t", {"n": 12})


def test_key_parts_have_borders(scene: Scene) -> None:
    """O3-04: parts were glued together and two tuples gave one key."""
    assert call_key("n", "t1", "x:1", "") != call_key("n", "t1:x", "1", "")
    assert fingerprint("pay", "out9") != fingerprint("payo", "ut9")
    assert len({scene.submit(call_id) for call_id in ("a:1", "a 1", "a\n1", "a\x001")}) == 4


@pytest.mark.parametrize("ending", ["refused connection", "rate limit", "business refusal", "read timeout"])
def test_what_releases_a_key_is_whether_the_effect_could_have_started(scene: Scene, ending: str) -> None:
    """O3-06: a first attempt that was turned away left a failure that could never be mended."""
    run = scene.start()
    match ending:
        case "refused connection" | "rate limit":
            scene.retry_later(run, delay_ms=1_000)
            scene.store.advance(1_000)
            scene.tick()
            assert scene.take().attempt == 2
        case "business refusal":
            scene.fail(run)
            assert scene.admit(scene.call())[0].failure == BROKEN
            assert scene.claim(run.idempotency_key) == NotRun("settled", "failed")
        case _:
            scene.settle(run, state=State.UNKNOWN)
            assert scene.claim(run.idempotency_key) == NotRun("unknown")


@pytest.mark.parametrize("value", [0, False, "", [], {}, None, 0.0])
def test_false_like_results_are_replayed_with_value_and_type(scene: Scene, value: object) -> None:
    """O3-07: they were dropped on storing, and the replay ran the function again."""
    scene.settle(scene.start(), value)
    (replayed,) = scene.admit(scene.call())
    assert (replayed.value, type(replayed.value), replayed.replayed) == (value, type(value), True)
    assert scene.queued_jobs() == []


def test_a_large_result_with_its_mark_is_a_success(scene: Scene) -> None:
    """O3-08, the store's part: an oversized result is a visible mark, never a failure."""
    run = scene.start()
    marks = {"truncated": True, "size": 64 * 2**20}
    ending = runs.Ending(State.SUCCEEDED, json.dumps("x" * 2**20), marks=json.dumps(marks))
    assert scene.run(runs.settle(scene.space, run, ending)).state is State.SUCCEEDED
    (outcome,) = scene.lookup(scene.call())
    assert outcome is not None
    assert (len(outcome.value), outcome.marks) == (2**20, marks)


def test_a_late_delivery_finds_the_marker_that_outlives_the_body(scene: Scene) -> None:
    """O3-10: the remembered key lived shorter than a backlog could deliver the request."""
    run = scene.start()
    scene.settle(run, "done")
    scene.store.advance(6_000)
    scene.run(forget(scene.space, State.SUCCEEDED, Retention(body_ms=5_000)))
    assert scene.claim(run.idempotency_key) == NotRun("settled", "succeeded")
    (outcome,) = scene.admit(scene.call())
    assert (outcome.state, outcome.marks["forgotten"]) == (State.SUCCEEDED, True)


def test_a_keyed_fingerprint_cannot_be_guessed_without_the_key(scene: Scene) -> None:
    """O3-11, the store's part: short secrets could be found from their hash."""
    keyring = Keyring.parse("a-key-of-enough-characters")
    guesses = {fingerprint("login", {"pin": pin}) for pin in range(10_000)}
    assert keyring.fingerprints("login", {"pin": 4711})[0] not in guesses


def test_one_tenant_sees_and_blocks_nothing_of_another(scene: Scene) -> None:
    """O3-12: keys were global. The rule here: scopes share nothing, sessions of one tenant neither."""
    same = {"q": "z"}
    first = scene.start("1", same, of=READ, scope="tenant-a/session-1")
    scene.settle(first, "a's answer")
    for scope in ("tenant-b/session-1", "tenant-a/session-2"):
        (outcome,) = scene.admit(scene.call("1", same, of=READ, scope=scope), turn=scene.turn(scope=scope))
        assert (outcome.state, outcome.value) == (State.QUEUED, None)
        assert scene.take().scope == scope


def test_integers_beyond_two_to_the_53rd_are_exact(scene: Scene) -> None:
    """O3-13: a 19-digit id was rounded while parsing."""
    numbers = (9007199254740993, 9007199254740992, 1234567890123456781, 1234567890123456780)
    keys = {scene.call(f"id-{number}", {"id": number}).identity.fingerprints for number in numbers}
    assert len(keys) == 4
    run = scene.start("a", {"id": numbers[2]})
    assert json.loads(run.arguments) == {"id": numbers[2]}
    scene.settle(run, numbers[2])
    assert scene.admit(scene.call("a", {"id": numbers[2]}))[0].value == numbers[2]
