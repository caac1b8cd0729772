"""Pauses: none of their calls begins, none expires, and all run afterwards, with what was left of their time."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.store.scene import LEASE_MS, Scene, spec
from toolonce.store.model.errors import StoreFull
from toolonce.store.model.states import State
from toolonce.store.operations import queries, recovery, runs
from toolonce.store.operations.controls import Paused, pause, paused_calls, resume
from toolonce.store.operations.operators import Actor
from toolonce.store.operations.runs import NotRun, Run

ANN = Actor("ann@host", "the bank is down")
SHORT = spec("pay", deadline_ms=10_000)
TARGETS = ["tool:pay", "tenant:acme", "queue:default"]


def ran(scene: Scene) -> list[str]:
    """Claim and settle all that have a pointer; the keys of those that ran, in their order."""
    found = []
    while (job := scene.pop()) is not None:
        if isinstance(run := scene.claim(job), Run):
            found.append(run.call)
            scene.settle(run, "done")
    return found


def counted(scene: Scene, target: str) -> Paused:
    return scene.store.run(paused_calls(scene.space, [target]))[target]


@pytest.mark.parametrize("target", TARGETS)
def test_a_call_of_a_paused_tool_tenant_or_queue_is_parked_and_runs_after_resume(scene: Scene, target: str) -> None:
    scene.pause(target)
    call = scene.submit(of=SHORT, tenant="acme")
    assert scene.claim(scene.pop() or "") == NotRun("parked", f"pause {target}")
    fields = scene.record(call).fields
    assert (scene.state(call), fields.reason, fields.waits) == (State.QUEUED, "paused", f"pause {target}")
    assert fields.deadline_left == 10_000
    assert counted(scene, target) == (1, 1)
    scene.store.advance(10 * 60_000)
    assert scene.tick()["expired"] == 0
    scene.resume(target)
    assert scene.record(call).fields.deadline_at == scene.store.now + 10_000
    assert ran(scene) == [call]
    assert counted(scene, target) == (0, 0)


@pytest.mark.parametrize("target", ["tool:look", "tenant:umbrella", "queue:mail"])
def test_what_a_pause_does_not_name_runs_on(scene: Scene, target: str) -> None:
    scene.pause(target)
    call = scene.submit(tenant="acme")
    assert ran(scene) == [call]


def test_the_history_of_a_call_tells_who_paused_it_for_how_long_and_who_resumed_it(scene: Scene) -> None:
    scene.run(pause(scene.space, "tool:pay", Actor("ann", "the bank is down")))
    call = scene.submit()
    assert ran(scene) == []
    scene.store.advance(90_000)
    scene.run(resume(scene.space, "tool:pay", Actor("bob", "it is up")))
    scene.tick()
    line = scene.record(call).history[-1]
    assert (line["op"], line["actor"]) == ("resume", "bob")
    assert line["reason"] == "it is up; tool:pay was paused for 90 s by ann"


def test_a_running_call_goes_on_and_its_next_attempt_is_parked_when_it_is_due(scene: Scene) -> None:
    run = scene.start(of=spec("look", "read", max_attempts=3))
    scene.pause("tool:look")
    assert scene.run(runs.renew(scene.space, [run], lease_ms=LEASE_MS)) == ("kept",)
    scene.retry_later(run, 1_000)
    assert scene.record(run.call).fields.waits == ""
    scene.store.advance(1_000)
    scene.tick()
    assert scene.claim(scene.pop() or "") == NotRun("parked", "pause tool:look")
    scene.resume("tool:look")
    assert ran(scene) == [run.call]


def test_a_running_call_of_a_paused_tool_settles(scene: Scene) -> None:
    run = scene.start()
    scene.pause("tool:pay")
    assert scene.settle(run, "done").verdict == "settled"


def test_parked_calls_come_back_a_bounded_number_a_step_the_oldest_first(scene: Scene) -> None:
    scene.pause("tool:pay")
    calls = [scene.submit(f"call-{n}", position=n) for n in range(7)]
    jobs = [scene.pop() for _ in calls]
    for job in reversed(jobs):  # in whatever order the pointers come
        scene.claim(job or "")
    scene.store.run(resume(scene.space, "tool:pay", ANN))
    back = []
    for _ in range(4):
        done, _ = scene.run(recovery.tick(scene.space, most=2))
        back.append(done.counts["woken"])
    assert back == [2, 2, 2, 1]
    assert ran(scene) == calls


def test_a_pause_of_the_tool_and_of_its_tenant_both_have_to_end(scene: Scene) -> None:
    scene.pause("tool:pay", "tenant:acme")
    call = scene.submit(tenant="acme", of=SHORT)
    assert ran(scene) == []
    scene.resume("tool:pay")
    assert ran(scene) == []
    scene.store.advance(60_000)
    assert scene.tick()["expired"] == 0
    scene.resume("tenant:acme")
    assert ran(scene) == [call]


@pytest.mark.parametrize("target", TARGETS)
def test_calls_that_wait_for_a_resume_are_counted_whether_they_are_parked_or_not(scene: Scene, target: str) -> None:
    scene.pause(target)
    for name in "abc":
        scene.submit(name, tenant="acme")
    assert counted(scene, target) == (3, 0)
    scene.claim(scene.pop() or "")
    assert counted(scene, target) == (3, 1)
    scene.store.advance(spec().deadline_ms)
    assert scene.tick()["parked"] == 2
    assert counted(scene, target) == (3, 3), "the pointers of the two still lie in the queue"


# Deadlines.


@pytest.mark.parametrize("target", TARGETS)
def test_the_deadline_sweep_parks_a_paused_call_instead_of_expiring_it(scene: Scene, target: str) -> None:
    call = scene.submit(tenant="acme", of=SHORT)
    scene.store.advance(4_000)
    scene.pause(target)
    scene.store.advance(60_000)
    assert scene.tick() == {"available": 0, "expired": 0, "approvals_expired": 0, "woken": 0, "parked": 1}
    assert scene.record(call).fields.deadline_left == 6_000, "the pause used up some of it"
    assert scene.claim(scene.pop() or "") == NotRun("parked", f"pause {target}"), "its old pointer"
    scene.resume(target)
    assert ran(scene) == [call]


def test_a_claim_parks_a_paused_call_whose_deadline_has_passed(scene: Scene) -> None:
    call = scene.submit(of=SHORT)
    scene.pause("tool:pay")
    scene.store.advance(60_000)
    assert scene.claim(scene.pop() or "") == NotRun("parked", "pause tool:pay")
    scene.resume("tool:pay")
    assert ran(scene) == [call]


@pytest.mark.parametrize("by", ["claim", "sweep"])
def test_a_call_that_was_never_parked_has_the_time_of_the_pause_again(scene: Scene, by: str) -> None:
    call = scene.submit(of=SHORT)
    scene.store.advance(2_000)
    scene.pause("queue:default")
    scene.store.advance(9_000)
    scene.store.run(resume(scene.space, "queue:default", ANN))  # and nobody has looked at the deadline meanwhile
    if by == "claim":
        assert ran(scene) == [call]
        return
    assert scene.tick()["expired"] == 0
    assert scene.record(call).fields.deadline_at == scene.store.now + 8_000
    scene.store.advance(8_000)
    assert scene.tick()["expired"] == 1, "once only"


def test_a_call_that_waits_through_several_pauses_has_the_time_of_all_of_them_again(scene: Scene) -> None:
    call = scene.submit(of=SHORT)
    for _ in range(3):
        scene.store.advance(2_000)
        scene.pause("queue:default")
        scene.store.advance(3_000)
        scene.store.run(resume(scene.space, "queue:default", ANN))
    assert scene.tick()["expired"] == 0
    assert scene.record(call).fields.deadline_at == scene.store.now + 4_000
    assert ran(scene) == [call]


def test_a_setting_stays_small_however_often_a_tool_is_paused(scene: Scene) -> None:
    for _ in range(50):
        scene.store.run(pause(scene.space, "tool:pay", ANN))
        scene.store.advance(1_000)
        scene.store.run(resume(scene.space, "tool:pay", ANN))
    assert len(scene.store.redis.hget(scene.space.controls, "pause tool:pay")) < 1_000


def test_two_pauses_at_once_and_a_call_that_came_in_between_are_counted_right(scene: Scene) -> None:
    scene.pause("tool:pay")
    scene.store.advance(5_000)
    call = scene.submit(tenant="acme", of=SHORT)
    scene.store.advance(3_000)
    scene.pause("tenant:acme")
    scene.store.advance(4_000)
    scene.store.run(resume(scene.space, "tool:pay", ANN))
    scene.store.advance(4_000)
    scene.tick()
    assert scene.record(call).fields.deadline_left == 10_000
    scene.store.advance(60_000)
    scene.resume("tenant:acme")
    assert ran(scene) == [call]


def test_a_call_held_for_want_of_a_worker_does_not_expire_while_its_tool_is_paused(scene: Scene) -> None:
    call = scene.submit(of=SHORT, held="no_worker")
    scene.store.advance(4_000)
    scene.pause("tool:pay")
    scene.store.advance(60_000)
    assert scene.tick()["parked"] == 1
    assert scene.record(call).fields.waits == "pause tool:pay"
    scene.resume("tool:pay")
    assert scene.record(call).fields.deadline_at == scene.store.now + 6_000
    assert ran(scene) == [call]


def test_a_parked_call_that_was_to_run_later_still_does(scene: Scene) -> None:
    run = scene.start(of=spec("look", "read", max_attempts=3, deadline_ms=5_000))
    scene.pause("tool:look")
    scene.retry_later(run, 60_000)
    scene.store.advance(6_000)
    assert scene.tick()["parked"] == 1
    scene.resume("tool:look")
    assert (scene.queued_jobs(), scene.record(run.call).fields.waits) == ([], "")
    assert scene.record(run.call).fields.not_before == scene.store.now + 54_000


# What is parked.


def test_a_parked_call_can_be_cancelled(scene: Scene) -> None:
    scene.pause("tool:pay")
    call = scene.submit()
    assert ran(scene) == []
    assert scene.cancel(call) == "cancelled"
    assert counted(scene, "tool:pay") == (0, 0)
    scene.resume("tool:pay")
    assert ran(scene) == []
    assert scene.store.redis.smembers(f"{scene.space.root}saturated_limits") == set()


def test_the_sweep_for_lost_pointers_leaves_parked_calls_alone(scene: Scene) -> None:
    scene.pause("tool:pay")
    scene.submit()
    assert ran(scene) == []
    for _ in range(3):
        assert scene.repush()["repushed"] == 0
        scene.store.advance(60_000)
    assert scene.queued_jobs() == []


def test_a_pointer_that_is_lost_while_the_tool_is_paused_is_found_and_the_call_parked(scene: Scene) -> None:
    scene.pause("tool:pay")
    call = scene.submit()
    scene.store.redis.delete(scene.space.queue_key("default"))
    for _ in range(2):
        scene.repush()
        scene.store.advance(6_000)
    assert ran(scene) == []
    scene.resume("tool:pay")
    assert ran(scene) == [call]


def test_a_doubled_pointer_brings_no_parked_call_forward(scene: Scene) -> None:
    scene.pause("tool:pay")
    calls = [scene.submit(name) for name in "ab"]
    jobs = [scene.pop() or "" for _ in calls]
    for job in jobs:
        scene.claim(job)
    scene.store.run(resume(scene.space, "tool:pay", ANN))
    assert scene.claim(jobs[1]) == NotRun("parked", "pause tool:pay")
    scene.tick()
    assert ran(scene) == calls


def test_a_claim_that_parks_answers_the_same_when_it_comes_twice(scene: Scene) -> None:
    scene.pause("tool:pay")
    scene.submit()
    claim = runs.claim(scene.space, scene.delivery(scene.pop() or ""), lease_ms=LEASE_MS)
    first = scene.run(claim)
    scene.store.run(resume(scene.space, "tool:pay", ANN))
    assert first == scene.run(claim) == NotRun("parked", "pause tool:pay")


def test_a_parked_call_holds_no_slot_and_passes_a_wake_up_on(scene: Scene) -> None:
    scene.limit("tenant:acme", 1)
    running = scene.start("a", tenant="acme")
    scene.submit("b", tenant="acme")
    scene.submit("c", of=spec("look", "read"), tenant="acme")
    assert ran(scene) == []
    scene.pause("tool:pay")
    scene.settle(running, "done")
    assert ran(scene) == [scene.call("c").identity.key], "the slot went to the next that may run"
    scene.resume("tool:pay")
    assert ran(scene) == [scene.call("b").identity.key]


def test_a_parked_call_keeps_its_place_in_its_lane(scene: Scene) -> None:
    scene.pause("tool:pay")
    first = scene.submit("a", lanes=("x",))
    second = scene.submit("b", lanes=("x",), of=spec("look", "read"))
    assert ran(scene) == []
    assert scene.record(second).fields.reason == "order"
    scene.resume("tool:pay")
    assert ran(scene) == [first, second]


def test_a_pause_tells_the_harness_why_its_call_waits(scene: Scene) -> None:
    scene.pause("tool:pay")
    asked = scene.call("a")
    scene.admit(asked)
    assert ran(scene) == []
    (told,) = scene.lookup(asked)
    assert told
    assert (told.state, told.marks, told.pending) == (State.QUEUED, {"reason": "paused"}, True)
    scene.resume("tool:pay")
    (told,) = scene.lookup(asked)
    assert told
    assert told.marks == {}


@pytest.mark.parametrize("target", TARGETS)
def test_a_turn_tells_that_its_queued_calls_are_paused_before_they_are_parked(scene: Scene, target: str) -> None:
    turn = scene.turn(tenant="acme")
    running = scene.start("r", tenant="acme")
    scene.submit("a", tenant="acme")
    scene.pause(target)

    def reasons() -> dict[Any, Any]:
        told = scene.run(queries.turn(scene.space, turn.key))
        return {outcome.state: outcome.marks.get("reason") for outcome in told}

    assert reasons() == {State.RUNNING: None, State.QUEUED: "paused"}
    scene.resume(target)
    assert reasons() == {State.RUNNING: None, State.QUEUED: None}
    scene.settle(running, "done")


def test_the_number_of_pauses_in_force_is_kept_however_often_each_is_said(scene: Scene) -> None:
    def flag() -> Any:
        return scene.store.redis.hget(f"{scene.space.root}flags", "pauses")

    for by in (ANN, ANN, Actor("bob")):
        scene.run(pause(scene.space, "tool:pay", by))
    scene.run(pause(scene.space, "queue:mail", ANN))
    assert flag() == "2"
    for target in ("tool:pay", "tool:pay", "queue:mail", "tenant:never"):
        scene.run(resume(scene.space, target, ANN))
    assert flag() is None


def test_parked_calls_are_counted_as_open_and_against_their_tenant(scene: Scene) -> None:
    scene.pause("tool:pay")
    for name in "abc":
        scene.submit(name, tenant="acme")
    assert ran(scene) == []
    stats = scene.stats()
    assert (stats.open, stats.balanced, stats.counts["tool:queued:pay"]) == (3, True, 3)
    with pytest.raises(StoreFull, match="tenant 'acme' has 3 queued calls"):
        scene.admit(scene.call("d"), turn=scene.turn(tenant="acme"), tenant_queue_limit=3)
