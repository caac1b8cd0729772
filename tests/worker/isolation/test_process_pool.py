"""Tools in processes of their own: killed hard, alone, and never without anyone noticing."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest

from tests.support.processes.workers import LEASE_MS, Site
from tests.support.wait import wait_until
from toolonce.store.model.states import State


def test_it_runs_in_another_process_than_the_worker(busy_site: Site) -> None:
    key = busy_site.submit("in_process", what="pid")

    record = busy_site.wait_for(key, State.SUCCEEDED)

    assert int(record.fields.result) != os.getpid()
    assert busy_site.ledger.lines("look pid") == [f"look pid {record.fields.result}"]


def test_a_handler_that_holds_the_interpreter_is_killed_at_its_limit(busy_site: Site) -> None:
    """O8-08: no exception is raised into it, so nothing of it can be swallowed."""
    key = busy_site.submit("spin", what="stuck")

    record = busy_site.wait_for(key, State.UNKNOWN)

    assert record.failure
    assert "run limit" in record.failure.message
    assert busy_site.ledger.count("put stuck") == 1
    assert not busy_site.ledger.lines("never")


def test_a_handler_that_holds_the_interpreter_does_not_lose_its_lease(busy_site: Site) -> None:
    """O2-05: the lease, twice `LEASE_MS` here, is shorter than the match takes."""
    key = busy_site.submit("hold_interpreter", what="match", seconds=5 * LEASE_MS / 1000)

    record = busy_site.wait_for(key, State.SUCCEEDED, State.UNKNOWN)

    assert record.state is State.SUCCEEDED
    assert record.fields.attempt == 1


def test_a_mutating_handler_that_dies_leaves_its_call_unknown(busy_site: Site) -> None:
    """O8-06."""
    key = busy_site.submit("die", what="dead")

    record = busy_site.wait_for(key, State.UNKNOWN)

    assert record.failure
    assert "died" in record.failure.message
    assert busy_site.ledger.count("put dead") == 1


def test_a_reading_handler_that_always_dies_is_given_up_after_its_attempts(busy_site: Site) -> None:
    """O8-06."""
    key = busy_site.submit("die_always", what="poison")

    record = busy_site.wait_for(key, State.FAILED)

    assert record.failure
    assert record.failure.code == "attempts_exhausted"
    assert busy_site.ledger.count("try poison") == 3


def test_progress_is_told_from_inside_a_process(busy_site: Site) -> None:
    key = busy_site.submit("process_put_and_wait", what="half")

    wait_until(lambda: busy_site.record(key).fields.progress == 0.5, description="progress is stored")
    busy_site.ledger.open_gate("half")

    assert busy_site.wait_for(key, State.SUCCEEDED).fields.progress_message == "half"


def test_no_handler_outlives_its_worker(site: Site) -> None:
    with site.worker() as worker:
        site.submit("process_put_and_wait", what="orphan")
        wait_until(lambda: site.ledger.count("put orphan"), description="the effect")
        pid = int(site.ledger.lines("put orphan")[0].split()[-1])
        worker.signal(signal.SIGKILL)

        wait_until(lambda: not _alive(pid), description="the handler's process is gone with its worker")


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_no_program_that_a_handler_started_outlives_its_worker(site: Site, end: signal.Signals) -> None:
    with site.worker(more=("--grace", "100ms")) as worker:
        site.submit("start_program", what="orphan")
        wait_until(lambda: site.ledger.count("put orphan"), description="the program")
        pid = int(site.ledger.lines("put orphan")[0].split()[-1])
        worker.signal(end)

        wait_until(lambda: not _alive(pid), description="the program is gone with the worker")


def test_a_stop_signal_to_the_whole_group_lets_the_handler_finish(site: Site) -> None:
    """O8-02."""
    with site.worker() as worker:
        key = site.submit("process_put_and_wait", what="group")
        wait_until(lambda: site.ledger.count("put group"), description="the effect")
        os.killpg(worker.pid, signal.SIGTERM)
        worker.wait_for_line("draining")
        site.ledger.open_gate("group")

        assert worker.wait() == 0

    assert site.state(key) is State.SUCCEEDED


def _alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return not _is_zombie(pid)
    return False


def _is_zombie(pid: int) -> bool:
    with suppress(OSError), open(f"/proc/{pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] == "Z"
    return False
