"""Lanes (one call at a time, in call order) and predecessors (only after another succeeded)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.store.scene import BROKEN, Scene, spec
from toolonce.store.model.states import State
from toolonce.store.operations import operators, queries
from toolonce.store.operations.admission import NewCall
from toolonce.store.operations.runs import NotRun
from toolonce.store.operations.tools import publish

READ = spec("look", "read", max_attempts=3)


def in_lane(scene: Scene, names: str = "abc", **more: Any) -> list[str]:
    return [scene.submit(name, lanes=("lane",), **more) for name in names]


def test_calls_of_a_lane_run_one_at_a_time_in_call_order(scene: Scene) -> None:
    calls = in_lane(scene)
    for position, call in enumerate(calls):
        assert scene.states(calls[position + 1 :]) == [State.HELD] * (2 - position)
        run = scene.take()
        assert run.call == call
        scene.settle(run)


def test_a_lane_goes_on_after_a_failure(scene: Scene) -> None:
    first, second, _ = in_lane(scene)
    scene.fail(scene.take())
    assert scene.states([first, second]) == [State.FAILED, State.QUEUED]


def test_a_lane_stops_at_unknown_until_it_is_settled(scene: Scene) -> None:
    first, second, _ = in_lane(scene)
    scene.lose(scene.take())
    assert scene.states([first, second]) == [State.UNKNOWN, State.HELD]
    scene.resolve(first, BROKEN)
    assert scene.state(second) is State.QUEUED


def test_a_lane_keeps_its_order_through_an_attempt_that_is_repeated(scene: Scene) -> None:
    first, second, _ = in_lane(scene, of=READ)
    scene.retry_later(scene.take(), delay_ms=1_000)
    assert scene.queued_jobs() == []
    scene.store.advance(1_000)
    scene.tick()
    assert scene.take().call == first
    assert scene.state(second) is State.HELD


@pytest.mark.parametrize("state", ["queued", "held"])
def test_a_call_that_is_cancelled_or_denied_passes_its_turn_on(scene: Scene, state: str) -> None:
    first = scene.submit("a", lanes=("lane",), held="approval" if state == "held" else "")
    second = scene.submit("b", lanes=("lane",))
    assert scene.state(second) is State.HELD
    if state == "held":
        scene.deny(first)
    else:
        scene.cancel(first)
    assert scene.take().call == second


def test_a_lane_head_that_expires_passes_its_turn_on(scene: Scene) -> None:
    scene.submit("a", lanes=("lane",), held="approval")
    second = scene.submit("b", lanes=("lane",))
    scene.store.advance(spec().approval_ms)
    scene.tick()
    assert scene.take().call == second


def test_a_call_that_is_approved_out_of_turn_waits_for_its_turn(scene: Scene) -> None:
    first = scene.submit("a", lanes=("lane",))
    second = scene.submit("b", lanes=("lane",), held="approval")
    assert scene.approve(second) == "approved"
    assert (scene.state(second), scene.record(second).fields.reason) == (State.HELD, "order")
    run = scene.take()
    assert run.call == first
    scene.settle(run)
    assert scene.take().call == second


def test_a_call_freed_by_a_worker_out_of_turn_waits_for_its_turn(scene: Scene) -> None:
    other = spec("other")
    first = scene.submit("a", lanes=("lane",))
    second = scene.submit("b", lanes=("lane",), of=other, held="no_worker")
    scene.run(publish(scene.space, [other]))
    assert (scene.state(second), scene.record(second).fields.reason) == (State.HELD, "order")
    scene.settle(scene.take())
    assert scene.take().call == second
    assert scene.state(first) is State.SUCCEEDED


def test_a_call_in_two_lanes_waits_for_both(scene: Scene) -> None:
    left = scene.submit("a", lanes=("left",))
    right = scene.submit("b", lanes=("right",))
    both = scene.submit("c", lanes=("left", "right"))
    runs = {run.call: run for run in (scene.take(), scene.take())}
    scene.settle(runs[left])
    assert scene.state(both) is State.HELD
    scene.settle(runs[right])
    assert scene.take().call == both


def test_calls_that_share_no_lane_run_at_once(scene: Scene) -> None:
    scene.submit("a", lanes=("left",))
    scene.submit("b", lanes=("right",))
    assert {scene.take().call_id, scene.take().call_id} == {"a", "b"}


def test_a_retried_call_goes_to_the_end_of_its_lane(scene: Scene) -> None:
    first, second, third = in_lane(scene)
    scene.fail(scene.take())
    assert scene.retry(first) == "queued"
    assert scene.claim(scene.queued_jobs()[-1]) == NotRun("held", "order")
    for call in (second, third, first):
        run = scene.take()
        assert run.call == call
        scene.settle(run)


def test_an_unknown_call_that_is_retried_keeps_its_place(scene: Scene) -> None:
    first, second, _ = in_lane(scene)
    scene.lose(scene.take())
    scene.retry(first)
    assert scene.take().call == first
    assert scene.state(second) is State.HELD


def test_a_follower_runs_after_its_predecessor_succeeded(scene: Scene) -> None:
    first = scene.submit("a")
    second = scene.submit("b", predecessors=(first,))
    assert scene.state(second) is State.HELD
    scene.settle(scene.take())
    assert scene.take().call == second


@pytest.mark.parametrize("ending", ["failed", "unknown", "cancelled"])
def test_a_follower_is_refused_when_its_predecessor_ends_otherwise(scene: Scene, ending: str) -> None:
    first = scene.submit("a")
    second = scene.submit("b", predecessors=(first,))
    if ending == "cancelled":
        scene.cancel(first)
    else:
        scene.settle(scene.take(), state=State(ending))
    stored = scene.record(second)
    assert stored.state is State.REFUSED
    assert stored.failure is not None
    assert (stored.failure.code, stored.failure.details) == ("predecessor", {"predecessor_state": ending})


def test_a_refusal_goes_down_the_whole_chain_of_followers(scene: Scene) -> None:
    calls = [scene.submit("a")]
    for name in "bcdefgh":
        calls.append(scene.submit(name, predecessors=(calls[-1],)))
    scene.fail(scene.take())
    assert set(scene.states(calls[1:])) == {State.REFUSED}


def test_a_follower_of_several_waits_for_all_of_them(scene: Scene) -> None:
    firsts = (scene.submit("a"), scene.submit("b"))
    follower = scene.submit("c", predecessors=firsts)
    scene.settle(scene.take())
    assert scene.state(follower) is State.HELD
    scene.settle(scene.take())
    assert scene.state(follower) is State.QUEUED


def test_a_follower_of_what_already_succeeded_runs_at_once_and_of_what_failed_never(scene: Scene) -> None:
    good, bad = scene.start("a"), scene.start("b")
    scene.settle(good)
    scene.fail(bad)
    assert scene.state(scene.submit("c", predecessors=(good.call,))) is State.QUEUED
    assert scene.state(scene.submit("d", predecessors=(bad.call,))) is State.REFUSED
    assert scene.state(scene.submit("e", predecessors=("0" * 32,))) is State.REFUSED


def test_a_follower_that_was_refused_for_one_predecessor_is_not_touched_by_another(scene: Scene) -> None:
    """The one that is still open may settle long after the follower's record was forgotten."""
    bad, slow = scene.start("a"), scene.start("b")
    scene.fail(bad)
    follower = scene.submit("c", predecessors=(slow.call, bad.call))
    before = scene.record(follower).fields
    scene.settle(slow)
    assert scene.record(follower).fields == before


def test_a_follower_that_waits_for_approval_still_hears_of_its_predecessor(scene: Scene) -> None:
    first = scene.submit("a")
    follower = scene.submit("b", predecessors=(first,), held="approval")
    scene.settle(scene.take())
    scene.approve(follower)
    assert scene.take().call == follower


def test_calls_of_one_turn_are_ordered_among_themselves(scene: Scene) -> None:
    first, second = (scene.call(name, lanes=("turn",), position=at) for at, name in enumerate("ab"))
    third = scene.call("c", predecessors=(second.identity.key,), position=2)
    outcomes = scene.admit(first, second, third)
    assert [outcome.state for outcome in outcomes] == [State.QUEUED, State.HELD, State.HELD]
    for name in "abc":
        run = scene.take()
        assert run.call_id == name
        scene.settle(run)


def test_a_stop_in_the_middle_of_a_lane_frees_nobody_before_his_turn(scene: Scene) -> None:
    first, second, third = in_lane(scene)
    scene.run(operators.cancel(scene.space, scene.seen(second), scene.word()))
    assert scene.states([first, second, third]) == [State.QUEUED, State.CANCELLED, State.HELD]
    scene.settle(scene.take())
    assert scene.state(third) is State.QUEUED


PAIR = {"reserve": spec("reserve"), "charge": spec("charge", after=("reserve",))}


def _asked(scene: Scene, name: str, call_id: str, **more: Any) -> NewCall:
    of = PAIR[name]
    return scene.call(call_id, of=of, after=of.after, **more)


def test_a_tool_that_comes_after_another_waits_for_what_an_earlier_submission_of_the_turn_stored(scene: Scene) -> None:
    """Faults 9."""
    scene.admit(_asked(scene, "reserve", "r1"))
    first = scene.take()
    scene.admit(_asked(scene, "reserve", "r2"))
    [charge] = scene.admit(_asked(scene, "charge", "c"))
    assert (charge.state, charge.marks) == (State.HELD, {"reason": "order"})
    scene.settle(first)
    assert scene.state(charge.key) is State.HELD, "the other reserve is still open"
    scene.settle(scene.take())
    assert scene.take().call == charge.key


def test_a_tool_that_comes_after_another_is_refused_where_that_one_failed_in_an_earlier_submission(
    scene: Scene,
) -> None:
    """Faults 9."""
    scene.admit(_asked(scene, "reserve", "r"))
    scene.fail(scene.take())
    [charge] = scene.admit(_asked(scene, "charge", "c"))
    assert charge.failure
    assert (charge.state, charge.failure.code) == (State.REFUSED, "predecessor")


def test_a_call_that_is_ahead_for_two_reasons_is_waited_for_once(scene: Scene) -> None:
    """Faults 9: in the same submission, and by its tool."""
    reserve = _asked(scene, "reserve", "r")
    charge = _asked(scene, "charge", "c", predecessors=(reserve.identity.key,), position=1)
    scene.admit(reserve, charge)
    scene.settle(scene.take())
    assert scene.take().call == charge.identity.key


def test_a_tool_that_comes_after_another_does_not_wait_for_other_turns_or_for_what_comes_later(scene: Scene) -> None:
    """Faults 9: what is submitted later was not known."""
    scene.admit(_asked(scene, "reserve", "r", turn_id="other"), turn=scene.turn("other"))
    [charge] = scene.admit(_asked(scene, "charge", "c"))
    assert charge.state is State.QUEUED
    [reserve] = scene.admit(_asked(scene, "reserve", "r"))
    assert reserve.state is State.QUEUED


def test_the_calls_of_a_turn_in_several_submissions_stand_in_the_order_of_these(scene: Scene) -> None:
    """Faults 22: each counts its positions from 0."""
    names = "fbdace"
    for name in names:
        scene.admit(scene.call(name))
        scene.store.advance(1)
    scene.admit(scene.call("y", position=0), scene.call("z", position=1))
    found = scene.run(queries.turn(scene.space, scene.turn().key))
    assert [outcome.call_id for outcome in found] == [*names, "y", "z"]
    assert [outcome.position for outcome in found] == list(range(8))


def test_the_calls_of_a_turn_that_was_completed_later_stand_in_call_order(scene: Scene) -> None:
    """Faults 22."""
    scene.admit(scene.call("c", position=2), scene.call("b", position=1))
    scene.admit(scene.call("a", position=0))
    found = scene.run(queries.turn(scene.space, scene.turn().key))
    assert [(outcome.call_id, outcome.position) for outcome in found] == [("a", 0), ("b", 1), ("c", 2)]


def test_a_call_behind_one_in_doubt_has_no_deadline_and_then_what_was_left_of_it(real_scene: Scene) -> None:
    """faults 26: it would expire before a person has decided about the one ahead, or as soon as he has."""
    scene, of = real_scene, spec(deadline_ms=10_000)
    first = scene.start("a", lanes=("lane",), of=of)
    second = scene.submit("b", lanes=("lane",), of=of)
    scene.lose(first)
    scene.store.advance(1_000_000)
    scene.tick()
    held = scene.record(second)
    scene.resolve(first.call)
    freed = scene.record(second)

    assert (held.state, held.fields.reason, held.waits_for) == (State.HELD, "order", (first.call, "unknown"))
    assert freed.state is State.QUEUED
    assert (freed.fields.deadline_at or 0) - freed.read_at == 10_000


def test_a_deadline_that_had_begun_goes_on_with_what_was_left_of_it(real_scene: Scene) -> None:
    """faults 26: a call that has waited for a worker, and is then behind one in doubt."""
    scene, other = real_scene, spec("other", deadline_ms=600_000)
    first = scene.start("a", lanes=("lane",))
    second = scene.submit("b", lanes=("lane",), of=other, held="no_worker")
    scene.store.advance(400_000)
    scene.run(publish(scene.space, [other]))
    scene.lose(first)
    scene.store.advance(10_000_000)
    scene.tick()
    held = scene.record(second)
    scene.resolve(first.call)
    freed = scene.record(second)

    assert (held.state, held.fields.reason) == (State.HELD, "order")
    assert held.fields.deadline_at is None
    assert freed.state is State.QUEUED
    assert (freed.fields.deadline_at or 0) - freed.read_at == 200_000
