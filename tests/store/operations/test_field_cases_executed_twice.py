"""Group 1 of the faults that others met: executed twice by a retry, a reconnect, a resume or a replay."""

from __future__ import annotations

from dataclasses import replace

from tests.support.store.scene import BROKEN, LEASE_MS, Scene, spec
from toolonce.store.model import identity
from toolonce.store.model.states import State
from toolonce.store.operations import queries, runs
from toolonce.store.operations.admission import Identified, NewCall
from toolonce.store.operations.runs import NotRun


def with_intent(scene: Scene, call: NewCall, intent: str) -> NewCall:
    key = identity.intent_call_key(scene.space.name, "scope", intent)
    return replace(call, identity=Identified(key, call.identity.fingerprints))


def test_a_harness_that_repeats_a_step_under_new_ids_runs_it_once_by_its_intent_key(scene: Scene) -> None:
    """O1-01: an agent's retry mints new call ids for the same intended action."""
    bill = {"order": "A-17", "amount": "42.50"}
    scene.admit(with_intent(scene, scene.call("c_a1", bill), "run-7/2/0"))
    scene.settle(scene.take(), "billed")
    second = with_intent(scene, scene.call("c_b9", bill, turn_id="attempt-2"), "run-7/2/0")
    (outcome,) = scene.admit(second, turn=scene.turn("attempt-2"))
    assert (outcome.value, outcome.replayed) == ("billed", True)
    assert scene.queued_jobs() == []


def test_without_an_intent_key_equal_content_under_a_new_id_is_a_new_call(scene: Scene) -> None:
    """O1-01: equal arguments alone are no proof of a repeat; the rule is that they run as a new call."""
    scene.submit("c_a1", {"order": "A-17"})
    scene.submit("c_b9", {"order": "A-17"}, turn_id="attempt-2")
    assert len(scene.queued_jobs()) == 2


def test_a_claim_without_a_result_is_never_served_as_a_result(scene: Scene) -> None:
    """O1-02: the process dies after the effect and before the record; the unfinished claim is no answer."""
    run = scene.start()
    assert scene.lose(run) is State.UNKNOWN
    assert scene.claim(run.idempotency_key) == NotRun("unknown")
    (outcome,) = scene.admit(scene.call())
    assert (outcome.state, outcome.settled, outcome.value) == (State.UNKNOWN, False, None)
    assert outcome.failure is not None
    assert outcome.failure.code == "outcome_unknown"
    assert scene.queued_jobs() == []


def test_a_redelivery_beside_a_live_lease_runs_nothing_however_long_the_tool_takes(scene: Scene) -> None:
    """O1-03: long work was dispatched again while its first copy still ran."""
    run = scene.start()
    for _ in range(4):
        scene.store.advance(LEASE_MS - 1)
        scene.run(runs.renew(scene.space, [run], lease_ms=LEASE_MS))
        scene.reclaim()
        assert isinstance(scene.claim(run.idempotency_key, worker="worker-b"), NotRun)
    assert scene.settle(run, "done").verdict == "settled"


def test_each_outcome_of_a_turn_is_stored_when_its_call_ends(scene: Scene) -> None:
    """O1-04: the third tool fails, and a resume repeats the first two."""
    calls = [scene.call(f"m{at}", position=at) for at in (1, 2, 3)]
    scene.admit(*calls)
    for value in ("one", "two"):
        scene.settle(scene.take(), value)
    scene.retry_later(scene.take())
    first, second, third = scene.admit(*calls)
    assert [first.value, second.value] == ["one", "two"]
    assert (first.replayed, second.replayed, third.pending) == (True, True, True)


def test_every_attempt_of_a_call_hands_the_tool_the_same_key_to_forward(scene: Scene) -> None:
    """O1-05, the store's part: an HTTP client below the tool repeats a POST; the server can tell by the key."""
    run = scene.start(of=spec("put", "idempotent"))
    scene.retry_later(run, delay_ms=0)
    assert scene.take().idempotency_key == run.idempotency_key


def test_who_asks_while_a_call_runs_hears_that_it_is_pending_and_not_an_error(scene: Scene) -> None:
    """O1-06, the store's part: a wait limit is no execution failure."""
    scene.start()
    (outcome,) = scene.run(queries.turn(scene.space, scene.turn().key))
    assert (outcome.pending, outcome.failure, outcome.settled) == (True, None, False)


def test_what_counts_is_the_call_and_not_the_number_of_its_delivery(scene: Scene) -> None:
    """O1-07: a redelivery whose first delivery never came must run; a second delivery with a new id must not."""
    scene.submit()
    job = scene.pop() or ""
    run = scene.claim(job, token="second-delivery")
    assert isinstance(run, runs.Run)
    assert isinstance(scene.claim(job, token="third-delivery"), NotRun)
    scene.settle(run, 1)
    assert scene.claim(job, token="fourth-delivery") == NotRun("settled", "succeeded")


def test_a_loop_that_submits_again_on_each_resume_runs_its_call_once(scene: Scene) -> None:
    """O1-08: a pause inside a loop replays all the code before it."""
    for _ in range(4):
        scene.submit("x", {"n": 1})
        if scene.queued_jobs():
            scene.settle(scene.take(), "done")
    assert scene.stats().counts["admitted"] == 1
    assert scene.stats().fence == 1


def test_an_exception_after_the_effect_is_unknown_and_the_queue_cannot_run_it_again(scene: Scene) -> None:
    """O1-09: the guard covered only the enqueue; RQ's own retry came past it."""
    run = scene.start()
    scene.run(runs.settle(scene.space, run, runs.Ending(State.UNKNOWN, failure=BROKEN)))
    scene.store.redis.rpush(scene.space.queue_key("default"), run.idempotency_key)
    assert scene.claim(scene.pop() or "") == NotRun("unknown")
