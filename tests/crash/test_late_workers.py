"""A worker that is stopped between its claim and the handler, and wakes up when others have decided already (G1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.crash.process_starter import ProcessStarter, StartedProcess
from tests.support.crash.site import CrashSite
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations.operators import Actor, Expected, retry
from toolonce.worker.maintenance.reconcile import GONE_AFTER_MS


@pytest.fixture
def place(starter: ProcessStarter, tmp_path: Path) -> Iterator[CrashSite]:
    with CrashSite(starter, tmp_path) as opened:
        yield opened


def _stopped_before_entry(place: CrashSite, kind: str) -> tuple[str, StartedProcess]:
    """A call that a worker has claimed and not entered; the worker is stopped, another one is there."""
    first, _ = place.submit(kind, {"lane": "one"})
    stopped = place.worker(crash="after_claim:stop")
    stopped.wait_until_stopped()
    place.worker()
    return first, stopped


def test_it_is_not_reconciled_as_absent_while_it_may_go_on(place: CrashSite) -> None:
    """faults 10: "not there" would be true, and the second run would have its effect beside this one's."""
    first, stopped = _stopped_before_entry(place, "again")
    waits = "is not known to be gone"
    wait_until(lambda: waits in (place.record(first).fields.heard or ""), 30, "its reconcile waits")
    stopped.resume()
    wait_until(lambda: place.state(first) is State.FAILED, 30, "it says that it was not entered")
    stopped.drain()

    assert place.ledger.entries(first) == 0
    assert place.ledger.effects(first) == 0
    assert "its lease ran out before its handler was entered" in stopped.output


def test_it_does_not_enter_what_an_operator_had_run_again(place: CrashSite) -> None:
    first, stopped = _stopped_before_entry(place, "mutating")
    wait_until(lambda: place.state(first) is State.UNKNOWN, 30, "its lease runs out")
    seen = Expected(first, State.UNKNOWN, place.record(first).fence)
    place.store.run(retry(place.store.space, seen, Actor("ann", "it is not in the books")))
    wait_until(lambda: place.state(first) is State.SUCCEEDED, 30, "the other one runs it")
    stopped.resume()
    stopped.drain()

    assert place.ledger.effects(first) == 1
    assert place.state(first) is State.SUCCEEDED
    assert [late["state"] for late in place.record(first).evidence] == ["failed"]


def test_it_says_that_nothing_was_entered_where_nobody_else_could_know(place: CrashSite) -> None:
    """Unknown is settled by the one who knows: it holds the fence of the only claim, and has not entered."""
    first, stopped = _stopped_before_entry(place, "mutating")
    wait_until(lambda: place.state(first) is State.UNKNOWN, 30, "its lease runs out")
    stopped.resume()
    wait_until(lambda: place.state(first) is State.FAILED, 30, "it says so")

    failure = place.record(first).failure
    assert failure
    assert (failure.code, failure.effect) == ("not_entered", "none")
    assert place.ledger.entries(first) == 0


def test_it_does_not_enter_what_was_reconciled_as_absent_and_ran_again(place: CrashSite) -> None:
    """faults 10: ten minutes after the call became unknown, its reconcile is asked although nobody knows of the other
    process: one of another host may never be known to be gone."""
    first, stopped = _stopped_before_entry(place, "again")
    waits = "is not known to be gone"
    wait_until(lambda: waits in (place.record(first).fields.heard or ""), 30, "its reconcile waits")
    record = place.store.space.record(first)
    ten_minutes_ago = (place.record(first).fields.changed_at or 0) - GONE_AFTER_MS
    place.store.redis.hset(record, "changed_at", ten_minutes_ago)
    wait_until(lambda: place.state(first) is State.SUCCEEDED, 30, "reconciled, and run again by the other one")
    stopped.resume()
    stopped.drain()

    assert place.ledger.entries(first) == 1
    assert place.ledger.effects(first) == 1
    assert place.state(first) is State.SUCCEEDED
    assert "its lease ran out before its handler was entered" in stopped.output
