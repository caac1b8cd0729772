"""Caps per tool and per tenant over all workers: never exceeded, never leaking, never leaving a call asleep."""

from __future__ import annotations

import pytest

from tests.support.store.scene import LEASE_MS, Scene, spec
from toolonce.store.model.states import State
from toolonce.store.operations.controls import limit
from toolonce.store.operations.runs import NotRun, Run
from toolonce.store.operations.tools import publish

ONE = spec("pay", concurrency=1)
READ_ONE = spec("look", "read", concurrency=1)


@pytest.fixture
def capped(scene: Scene) -> Scene:
    """Both tools run one call at a time."""
    scene.run(publish(scene.space, [ONE, READ_ONE]))
    return scene


def claim_next(scene: Scene, queue: str = "default") -> Run | NotRun:
    job = scene.pop(queue)
    assert job is not None
    return scene.claim(job, queue=queue)


def test_a_tool_runs_no_more_calls_at_once_than_its_cap(capped: Scene) -> None:
    capped.run(publish(capped.space, [spec("pay", concurrency=2)]))
    for name in "abc":
        capped.submit(name)
    assert [type(claim_next(capped)) for _ in range(3)] == [Run, Run, NotRun]


def test_a_parked_call_takes_no_pointer_and_no_slot(capped: Scene) -> None:
    running = capped.start("a")
    call = capped.submit("b")
    assert claim_next(capped) == NotRun("parked", "tool:pay")
    assert (capped.queued_jobs(), capped.state(call)) == ([], State.QUEUED)
    capped.settle(running)
    assert capped.take().call == call


@pytest.mark.parametrize("leave", ["settle", "fail", "unknown", "release", "retry_later", "lose"])
def test_whoever_leaves_running_passes_the_slot_on(capped: Scene, leave: str) -> None:
    running = capped.start("a", of=READ_ONE)
    waiting = capped.submit("b", of=READ_ONE)
    claim_next(capped)
    match leave:
        case "settle":
            capped.settle(running)
        case "fail":
            capped.fail(running)
        case "unknown":
            capped.settle(running, state=State.UNKNOWN)
        case "release":
            capped.release(running)
        case "retry_later":
            capped.retry_later(running)
        case "lose":
            capped.lose(running)
    assert capped.take().call == waiting


def test_the_call_that_has_waited_longest_is_woken_first(capped: Scene) -> None:
    running = capped.start("a")
    waiting = [capped.submit(name) for name in "bcd"]
    for _ in waiting:
        claim_next(capped)
    for call in waiting:
        capped.settle(running)
        running = capped.take()
        assert running.call == call


def test_a_woken_call_goes_before_those_that_came_later(capped: Scene) -> None:
    running = capped.start("a")
    waiting = capped.submit("b")
    claim_next(capped)
    capped.submit("c")
    capped.settle(running)
    assert capped.take().call == waiting


@pytest.mark.parametrize("end", ["cancel", "expire"])
def test_a_woken_call_that_ends_before_its_claim_passes_the_wake_up_on(capped: Scene, end: str) -> None:
    running = capped.start("a")
    woken, next_one = (capped.submit(n, of=spec("pay", deadline_ms=d)) for n, d in (("b", 1_000), ("c", 600_000)))
    claim_next(capped)
    claim_next(capped)
    capped.settle(running)
    if end == "cancel":
        capped.cancel(woken)
    else:
        capped.store.advance(1_000)
        capped.tick()
    claims = [claim_next(capped) for _ in range(2)]
    assert NotRun("settled", str(capped.state(woken))) in claims
    assert next_one in [claim.call for claim in claims if isinstance(claim, Run)]


def test_a_newcomer_may_take_the_slot_of_a_woken_call_which_then_keeps_its_place(capped: Scene) -> None:
    running = capped.start("a")
    woken, later = capped.submit("b"), capped.submit("c")
    claim_next(capped)
    claim_next(capped)
    capped.settle(running)
    newcomer = capped.submit("d")
    jobs = capped.queued_jobs()
    thief = capped.claim(jobs[-1])
    assert isinstance(thief, Run)
    assert thief.call == newcomer
    assert claim_next(capped) == NotRun("parked", "tool:pay")
    capped.settle(thief)
    assert [capped.take().call, capped.state(later)] == [woken, State.QUEUED]


def test_a_raised_or_lifted_cap_wakes_who_waits(capped: Scene) -> None:
    capped.start("a")
    waiting = [capped.submit(name) for name in "bcde"]
    for _ in waiting:
        claim_next(capped)
    capped.run(publish(capped.space, [spec("pay", concurrency=3)]))
    assert [capped.take().call for _ in range(2)] == waiting[:2]
    capped.run(publish(capped.space, [spec("pay")]))
    assert [capped.take().call for _ in range(2)] == waiting[2:]


def test_a_raised_cap_of_every_tenant_wakes_who_waits(scene: Scene) -> None:
    scene.limit("tenant:*", 1)
    calls = [scene.submit(name, tenant=tenant) for name, tenant in (("a", "x"), ("b", "y"), ("c", "x"), ("d", "y"))]
    for _ in calls:
        claim_next(scene)
    scene.limit("tenant:*", 2)
    assert {scene.take().call for _ in range(2)} == {*calls[2:]}


def test_the_sweep_wakes_others_when_nobody_comes_for_a_woken_call(scene: Scene) -> None:
    """A tenant's calls may lie in several queues, and a queue may have no worker."""
    scene.limit("tenant:*", 1)
    far, near = spec("far", queue="far"), spec("near")
    running = scene.start("a", of=near, tenant="acme")
    scene.submit("b", of=far, tenant="acme")
    waiting = scene.submit("c", of=near, tenant="acme")
    claim_next(scene, "far")
    claim_next(scene)
    scene.settle(running)
    assert scene.queued_jobs() == []
    assert scene.tick()["woken"] == 1
    assert scene.take().call == waiting


def test_one_tenants_cap_stops_no_other_tenant(scene: Scene) -> None:
    scene.limit("tenant:*", 1)
    scene.limit("tenant:big", 2)
    for name, tenant in (("a", "acme"), ("b", "acme"), ("c", "big"), ("d", "big"), ("e", "big")):
        scene.submit(name, tenant=tenant)
    assert [type(claim_next(scene)) for _ in range(5)] == [Run, NotRun, Run, Run, NotRun]


def test_a_call_under_two_caps_takes_both_slots_or_none(capped: Scene) -> None:
    capped.limit("tenant:acme", 1)
    other = capped.start("a", of=spec("free"), tenant="acme")
    waiting = capped.submit("b", tenant="acme")
    assert claim_next(capped) == NotRun("parked", "tenant:acme")
    rival = capped.start("c", tenant="else")
    capped.settle(other)
    assert claim_next(capped) == NotRun("parked", "tool:pay")
    capped.settle(rival)
    assert capped.take().call == waiting


def test_a_call_that_was_woken_for_one_cap_and_meets_another_passes_the_first_on(capped: Scene) -> None:
    capped.limit("tenant:acme", 1)
    running = capped.start("a", of=spec("free"), tenant="acme")
    blocked = capped.submit("b", tenant="acme")
    fitting = capped.submit("c", of=spec("free"), tenant="acme")
    claim_next(capped)
    claim_next(capped)
    capped.start("d", tenant="else")
    capped.settle(running)
    assert claim_next(capped) == NotRun("parked", "tool:pay")
    assert capped.take().call == fitting
    assert capped.state(blocked) is State.QUEUED


def test_a_killed_holders_slot_is_passed_on_within_a_lease(capped: Scene) -> None:
    capped.start("a")
    waiting = capped.submit("b")
    claim_next(capped)
    capped.store.advance(LEASE_MS + 1)
    capped.reclaim()
    assert capped.take().call == waiting


def test_a_lifted_limit_is_gone_and_a_negative_one_is_refused(scene: Scene) -> None:
    scene.limit("tenant:acme", 0)
    call = scene.submit(tenant="acme")
    assert claim_next(scene) == NotRun("parked", "tenant:acme")
    scene.limit("tenant:acme", None)
    assert scene.take().call == call
    with pytest.raises(ValueError, match="at least 0"):
        limit(scene.space, "tenant:acme", -1, scene.word())
    with pytest.raises(ValueError, match="tool:NAME, tenant:NAME, or tenant:\\*"):
        limit(scene.space, "acme", 1, scene.word())


def test_a_pointer_that_comes_twice_leaves_the_call_waiting_in_one_place_and_in_its_turn(scene: Scene) -> None:
    """The first delivery of the pointer finds the tenant full, the second one the tool; the audit looks at both."""
    scene.run(publish(scene.space, [READ_ONE]))
    scene.limit("tenant:acme", 1)
    of_tenant = scene.start("a", tenant="acme")
    first = scene.submit("b", of=READ_ONE, tenant="acme")
    assert claim_next(scene) == NotRun("parked", "tenant:acme")
    of_tool = scene.start("c", of=READ_ONE)
    second = scene.submit("d", of=READ_ONE)
    assert claim_next(scene) == NotRun("parked", "tool:look")
    assert scene.claim(scene.record(first).idempotency_key) == NotRun("parked", "tool:look")
    scene.settle(of_tenant)
    scene.settle(of_tool)
    run = scene.take()
    assert run.call == first
    scene.settle(run)
    assert scene.take().call == second


def test_a_delayed_call_whose_pointer_comes_twice_waits_for_its_slot_alone(scene: Scene) -> None:
    """Its wait is over, and the sweep has not come yet, when an old pointer of it is claimed."""
    scene.run(publish(scene.space, [READ_ONE]))
    delayed = scene.start("a", of=READ_ONE)
    scene.retry_later(delayed, 1_000)
    scene.start("b", of=READ_ONE)
    scene.store.advance(1_000)
    assert scene.claim(scene.record(delayed.call).idempotency_key) == NotRun("parked", "tool:look")
    scene.tick()
    assert scene.queued_jobs() == []
