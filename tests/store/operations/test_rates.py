"""Rates: how many calls of a tool may start in a time. Kept exactly, with hardly a claim too many, in the order of the
calls, and by the server's clock alone."""

from __future__ import annotations

import random

import pytest

from tests.support.store.scene import Scene, spec
from toolonce.store.model.controls import ControlKind
from toolonce.store.model.rates import Rate
from toolonce.store.model.states import State
from toolonce.store.operations import recovery
from toolonce.store.operations.controls import controls, rate
from toolonce.store.operations.runs import NotRun, Run
from toolonce.store.operations.tools import publish

SEARCH = spec("search", "read", rate="100/min")
RATED = "rate:tool:search"
EVERY_MS = 603
"""From one start to the next at 100/min: half a percent more than 600 ms, by which a start may be 300 ms late."""


@pytest.fixture
def rated(scene: Scene) -> Scene:
    """The tool `search` may start 100 calls a minute."""
    scene.run(publish(scene.space, [SEARCH]))
    return scene


class Workers:
    """Some workers that never sleep: at each look they sweep, and claim all that is in the queue."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.claims = 0
        self.starts: list[tuple[int, str]] = []

    def look(self) -> int | None:
        """Sweep and claim; the ms until the next look is asked for."""
        due = self.scene.store.run(recovery.tick(self.scene.space))[1]
        while job := self.scene.pop():
            self.claims += 1
            got = self.scene.claim(job)
            if isinstance(got, Run):
                self.starts.append((self.scene.store.now, got.call))
                self.scene.settle(got)
            elif got.due_ms is not None:
                due = got.due_ms if due is None else min(due, got.due_ms)
        return due

    def work(self, span_ms: int, late_ms: tuple[int, int] = (0, 0), seed: int = 1) -> None:
        """Look whenever it is asked for, each time late by something in this range, else after two seconds."""
        end, by_chance = self.scene.store.now + span_ms, random.Random(seed)
        while True:
            due = self.look()
            pause = max(10, 2_000 if due is None else due) + by_chance.randint(*late_ms)
            if self.scene.store.now + pause >= end:
                return
            self.scene.store.advance(pause)

    def most_in(self, window_ms: int) -> int:
        """The most starts in any window of this length."""
        at = [moment for moment, _ in self.starts]
        return max(sum(1 for other in at if start <= other < start + window_ms) for start in at)


@pytest.fixture
def workers(scene: Scene) -> Workers:
    return Workers(Scene(scene.store, audited=False))


def submit(scene: Scene, count: int, start: int = 0) -> list[str]:
    patient = spec("search", "read", rate="100/min", deadline_ms=36_000_000)
    return [scene.submit(f"call-{at}", of=patient) for at in range(start, start + count)]


@pytest.mark.parametrize("late_ms", [(0, 0), (0, 290), (50, 290)])
def test_no_minute_has_more_starts_than_the_rate_says_and_hardly_one_has_fewer(
    rated: Scene, workers: Workers, late_ms: tuple[int, int]
) -> None:
    calls = submit(workers.scene, 250)
    workers.work(120_000, late_ms)
    assert workers.most_in(60_000) <= 100
    assert len(workers.starts) >= 198
    assert [call for _, call in workers.starts] == calls[: len(workers.starts)]
    assert workers.claims <= 1.1 * len(workers.starts)


def test_starts_that_are_later_than_a_rate_makes_up_for_are_lost_and_not_made_up_later(
    rated: Scene, workers: Workers
) -> None:
    submit(workers.scene, 60)
    workers.work(10_000)
    workers.scene.store.advance(20_000)
    before = len(workers.starts)
    workers.look()
    assert len(workers.starts) == before + 1
    workers.work(10_000)
    assert workers.most_in(60_000) <= 100


@pytest.mark.parametrize(
    ("written", "at_once", "in_a_minute"),
    [("5/s", 1, 300), ("100/s", 5, 6_000), ("600/min", 3, 600), ("3600/h", 18, None), ("10/d", 1, None)],
)
def test_a_rate_counts_by_its_own_time_or_a_minute(
    scene: Scene, workers: Workers, written: str, at_once: int, in_a_minute: int | None
) -> None:
    """`at_once`: after a rest, half a percent of its time may start together, 50 ms' worth at least."""
    scene.run(publish(scene.space, [spec("search", "read", rate=written)]))
    submit(workers.scene, 30)
    workers.look()
    assert len(workers.starts) == at_once
    every_us = -(-Rate.parse(written).period_ms * 1000 * 201 // (200 * Rate.parse(written).calls))
    early_us = max(Rate.parse(written).period_ms * 5, 50_000)
    window_us = max(Rate.parse(written).period_ms, 60_000) * 1000
    most = -(-(window_us + early_us) // every_us)
    assert most <= Rate.parse(written).per_second * window_us / 1e6
    assert in_a_minute is None or in_a_minute * 0.99 <= most <= in_a_minute


def test_calls_behind_one_over_its_rate_cost_no_claim_each_and_others_keep_their_places(
    rated: Scene, workers: Workers
) -> None:
    kept, other = submit(rated, 3), [rated.submit("x", of=spec("look", "read"))]
    other.append(rated.submit("y", of=spec("look", "read")))
    submit(rated, 3, start=3)
    rated.take()
    assert rated.claim(rated.pop() or "") == NotRun("parked", RATED, due_ms=EVERY_MS - 300)
    assert [job[:32] for job in rated.queued_jobs()] == other
    assert rated.store.redis.zcard(f"{rated.space.root}waiting:{RATED}") == 5
    assert rated.state(kept[1]) is State.QUEUED


def test_calls_admitted_while_others_wait_for_the_rate_join_them_without_a_pointer(rated: Scene) -> None:
    submit(rated, 2)
    rated.take()
    rated.claim(rated.pop() or "")
    late = submit(rated, 1, start=9)[0]
    assert rated.queued_jobs() == []
    assert rated.record(late).fields.waits == RATED
    rated.submit("other", of=spec("look", "read"))
    assert len(rated.queued_jobs()) == 1


def test_admission_asks_no_longer_once_nobody_waits(rated: Scene) -> None:
    submit(rated, 2)
    rated.take()
    rated.claim(rated.pop() or "")
    assert rated.store.redis.hexists(f"{rated.space.root}flags", "rates_wait")
    rated.store.advance(EVERY_MS)
    rated.tick()
    rated.take()
    rated.tick()
    assert not rated.store.redis.hexists(f"{rated.space.root}flags", "rates_wait")


def test_a_newcomer_does_not_take_the_start_of_one_that_was_woken(rated: Scene) -> None:
    first, second = submit(rated, 2)
    assert rated.take().call == first
    rated.claim(rated.pop() or "")
    rated.store.advance(EVERY_MS)
    assert rated.tick()["woken"] == 1
    submit(rated, 1, start=5)
    woken, newcomer = rated.queued_jobs()
    assert isinstance(rated.claim(newcomer), NotRun)
    got = rated.claim(woken)
    assert isinstance(got, Run)
    assert got.call == second


@pytest.mark.parametrize("end", ["cancel", "expire"])
def test_a_woken_call_that_ends_before_its_claim_leaves_its_start_to_the_next(rated: Scene, end: str) -> None:
    one, two, three = (
        rated.submit(n, of=spec("search", "read", deadline_ms=d))
        for n, d in zip("abc", (900_000, 1_000, 900_000), strict=True)
    )
    assert rated.take().call == one
    rated.claim(rated.pop() or "")
    rated.store.advance(EVERY_MS)
    rated.tick()
    if end == "cancel":
        rated.cancel(two)
    else:
        rated.store.advance(1_000)
        rated.tick()
    assert rated.state(two).is_settled
    claims = [rated.claim(job) for job in rated.queued_jobs()]
    assert [claim.call for claim in claims if isinstance(claim, Run)] == [three]


def test_a_call_that_waits_for_the_rate_expires_at_its_deadline(rated: Scene) -> None:
    rated.start("a", of=SEARCH)
    waiting = rated.submit("b", of=spec("search", "read", deadline_ms=200))
    rated.claim(rated.pop() or "")
    rated.store.advance(200)
    rated.tick()
    assert rated.state(waiting) is State.EXPIRED


@pytest.mark.parametrize("back", ["release", "refused"])
def test_a_claim_that_is_given_back_before_its_handler_returns_its_start(rated: Scene, back: str) -> None:
    first, second = submit(rated, 2)
    run = rated.take()
    if back == "release":
        rated.release(run)
        rated.release(run)  # sent again: it is returned once
    else:
        rated.settle(run, state=State.REFUSED)
        rated.settle(run, state=State.REFUSED)
    jobs = [job for job in rated.queued_jobs() if job[:32] == (first if back == "release" else second)]
    assert isinstance(rated.claim(jobs[0]), Run)
    third = submit(rated, 1, start=7)[0]
    assert isinstance(rated.claim(rated.record(third).idempotency_key), NotRun)


def test_an_attempt_that_was_made_has_used_its_start_whatever_became_of_it(rated: Scene) -> None:
    run = rated.start("a", of=SEARCH)
    rated.retry_later(run, delay_ms=10)
    rated.store.advance(10)
    rated.tick()
    assert isinstance(rated.claim(rated.pop() or ""), NotRun)


def test_a_claim_that_comes_twice_takes_one_start(rated: Scene) -> None:
    calls = submit(rated, 2)
    jobs = rated.queued_jobs()
    delivery = rated.delivery(jobs[0], token="t")
    first = rated.claim(jobs[0], token="t")
    bucket = rated.store.redis.hget(f"{rated.space.root}buckets", RATED)
    assert rated.claim(jobs[0], token="t") == first
    assert rated.store.redis.hget(f"{rated.space.root}buckets", RATED) == bucket
    assert rated.claim(jobs[1]) == rated.claim(jobs[1])
    assert (delivery.call, rated.state(calls[1])) == (calls[0], State.QUEUED)


@pytest.mark.parametrize("step_ms", [-3_600_000, -1_000, 3_600_000])
def test_a_step_of_the_clock_stops_no_rate_and_gives_no_more_away_than_a_rest_does(
    rated: Scene, workers: Workers, step_ms: int
) -> None:
    submit(workers.scene, 60)
    workers.work(10_000)
    before = len(workers.starts)
    workers.scene.store.advance(step_ms)
    after = workers.scene.store.now
    workers.work(10_000)
    starts = [at for at, _ in workers.starts[before:]]
    assert 14 <= len(starts) <= 18
    assert starts[0] - after <= 2_000 + EVERY_MS


@pytest.mark.parametrize(("people", "many"), [("600/min", 103), ("30/min", 6)])
def test_the_rate_of_people_wins_over_the_code_in_both_directions_until_it_is_cleared(
    rated: Scene, workers: Workers, people: str, many: int
) -> None:
    rated.run(rate(rated.space, "tool:search", Rate.parse(people), rated.word()))
    rated.run(publish(rated.space, [SEARCH]))
    submit(workers.scene, 200)
    workers.work(10_000)
    assert len(workers.starts) == many
    rated.run(rate(rated.space, "tool:search", None, rated.word()))
    before = len(workers.starts)
    workers.work(12_000)
    assert 18 <= len(workers.starts) - before <= 20


def test_all_go_on_when_the_code_and_people_say_no_rate_any_more(rated: Scene) -> None:
    calls = submit(rated, 5)
    rated.take()
    rated.claim(rated.pop() or "")
    rated.run(publish(rated.space, [spec("search", "read")]))
    rated.tick()
    assert [rated.take().call for _ in range(4)] == calls[1:]


@pytest.mark.parametrize("cap", [1, 3])
def test_a_limit_and_a_rate_of_one_tool_hold_both(scene: Scene, cap: int) -> None:
    """Each call takes two seconds; at the rate alone four would run at once."""
    scene.run(publish(scene.space, [spec("search", "read", rate="100/min", concurrency=cap)]))
    calls = submit(scene, 12)
    running: list[tuple[int, Run]] = []
    started: list[str] = []
    claims = 0
    while len(started) < len(calls):
        scene.tick()
        while job := scene.pop():
            claims += 1
            got = scene.claim(job)
            if isinstance(got, Run):
                running.append((scene.store.now + 2_000, got))
                started.append(got.call)
        assert len(running) <= cap
        scene.store.advance(100)
        for ended in [one for one in running if one[0] <= scene.store.now]:
            running.remove(ended)
            scene.settle(ended[1])
    assert started == calls
    assert claims <= 1.5 * len(calls)


def test_a_woken_call_whose_worker_died_before_its_claim_holds_up_the_rate_for_a_moment_only(
    rated: Scene, workers: Workers
) -> None:
    submit(workers.scene, 30)
    workers.look()
    workers.scene.store.advance(EVERY_MS)
    workers.scene.tick()
    lost = workers.scene.pop()
    assert lost
    workers.work(20_000)
    assert len(workers.starts) >= 15
    assert workers.scene.state(lost[:32]) is State.QUEUED
    for _ in range(2):
        workers.scene.repush()
        workers.scene.store.advance(6_000)
    workers.work(10_000)
    assert workers.scene.state(lost[:32]) is State.SUCCEEDED


def test_calls_that_were_woken_while_all_workers_were_busy_do_not_start_together(rated: Scene) -> None:
    """Nobody claims for a minute; after ten seconds each a woken call is thought lost, and another one is woken."""
    calls = submit(rated, 20)
    assert rated.take().call == calls[0]
    rated.claim(rated.pop() or "")
    for _ in range(10):
        rated.store.advance(6_000)
        rated.tick()
    claims = [rated.claim(job) for job in rated.queued_jobs()]
    assert len(claims) > 3
    assert len([claim for claim in claims if isinstance(claim, Run)]) == 1
    rated.store.advance(EVERY_MS)
    rated.tick()
    assert rated.take().call == calls[1]


def test_a_rate_is_told_as_it_is_written_and_what_is_none_is_refused() -> None:
    assert [str(Rate.parse(text)) for text in ("100/min", "5/s", "007/h", "1/d")] == ["100/min", "5/s", "7/h", "1/d"]
    assert str(Rate.from_stored("100/60000")) == "100/min"
    for wrong in ("", "100", "0/min", "-1/s", "1.5/s", "100/m", "100 / min", "1e3/s", "9999999/s", None, 5):
        with pytest.raises(ValueError, match="is no rate: write calls/unit"):
            Rate.parse(wrong)


def test_a_rate_is_for_a_tool_alone(scene: Scene) -> None:
    for target in ("tenant:acme", "tool:*", "queue:mail", "search"):
        with pytest.raises(ValueError, match="a rate is for tool:NAME"):
            rate(scene.space, target, Rate.parse("1/s"), scene.word())


def test_both_words_about_a_rate_are_told(rated: Scene) -> None:
    rated.run(rate(rated.space, "tool:search", Rate.parse("5/s"), rated.word("slow")))
    said = rated.run(controls(rated.space))
    assert said.code[ControlKind.RATE, "tool:search"] == "100/60000"
    assert (said.in_force(ControlKind.RATE, "tool:search"), said.people[ControlKind.RATE, "tool:search"].reason) == (
        "5/1000", "slow",
    )  # fmt: skip
