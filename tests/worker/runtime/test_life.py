"""The life of a worker process: drain, grace, signals, being worn out."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes.processes import Child
from tests.support.processes.tools_under_test import VARIABLE, tools
from tests.support.processes.workers import TOOLS, Site
from tests.support.wait import wait_until
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.specs import ToolSpec
from toolonce.store.model.states import State
from toolonce.worker import Registry
from toolonce.worker.maintenance.fence_watermark import ConfirmedWatermark
from toolonce.worker.runtime.preflight import check_start
from toolonce.worker.runtime.process import Options, Process
from toolonce.worker.runtime.signals import Signals
from toolonce.worker.runtime.worker_status import read_workers


def test_a_drain_takes_nothing_new_and_finishes_what_runs(site: Site) -> None:
    with site.worker(slots=1) as worker:
        running = site.submit("put_and_wait", what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        worker.signal(signal.SIGTERM)
        worker.wait_for_line("draining")
        waiting = site.submit("put", what="y")
        site.ledger.open_gate("x")

        assert worker.wait() == 0

    assert site.state(running) is State.SUCCEEDED
    assert site.state(waiting) is State.QUEUED
    assert site.ledger.count("put y") == 0


def test_what_still_runs_at_the_end_of_the_grace_is_interrupted_at_once(site: Site) -> None:
    """O8-01: unknown now, not after a lease; what may be repeated goes back to the queue."""
    with site.worker(lease_ms=60_000, more=("--grace", "300ms")) as worker:
        mutating = site.submit("put_and_wait", what="x")
        reading = site.submit("look_and_wait", what="y")
        wait_until(lambda: site.ledger.count() == 2, description="both are inside")
        worker.terminate()

    record = site.record(mutating)
    assert record.state is State.UNKNOWN
    assert record.failure
    assert "interrupted by shutdown" in record.failure.message
    assert site.state(reading) is State.QUEUED
    assert site.ledger.count("put x") == 1


def test_a_second_signal_ends_it_at_once_and_leaves_the_same_truth(site: Site) -> None:
    with site.worker(lease_ms=60_000, more=("--grace", "60s")) as worker:
        key = site.submit("put_and_wait", what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        worker.signal(signal.SIGTERM)
        worker.wait_for_line("draining")
        worker.signal(signal.SIGINT)
        worker.wait()

    assert site.state(key) is State.UNKNOWN
    assert site.ledger.count("put x") == 1


def test_leases_are_renewed_during_a_drain(site: Site) -> None:
    with site.worker(lease_ms=1_500) as worker:
        key = site.submit("put_and_wait", what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        worker.signal(signal.SIGTERM)
        worker.wait_for_line("draining")
        _outlive_a_lease(site, key)
        site.ledger.open_gate("x")

        moves = [event["op"] for event in site.wait_for(key, State.SUCCEEDED).history]

    assert moves == ["admit", "claim", "settle"]


def test_a_worn_out_worker_drains_and_asks_to_be_started_anew(site: Site) -> None:
    registry = Registry()

    @registry.tool(effect="mutating", timeout=0.1)
    def hang(what: str) -> None:
        from tests.support.processes.tools_under_test import pass_gate

        pass_gate(what)

    with site.worker_here(registry, abandoned_limit=2) as process:
        for what in ("a", "b"):
            site.wait_for(site.submit("hang", what=what), State.UNKNOWN)
        wait_until(lambda: process.is_draining, description="it drains by itself")
        for what in ("a", "b"):
            site.ledger.open_gate(what)


def test_a_worker_shows_what_it_is_doing(site: Site) -> None:
    with site.worker() as worker:
        key = site.submit("put_and_wait", what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")

        row = wait_until(
            lambda: next((row for row in read_workers(site.connection) if row.report and row.report.doing), None)
        )
        site.ledger.open_gate("x")
        worker.terminate()

    assert row
    assert row.report
    assert (row.pid, row.report.doing[0].call, row.report.doing[0].tool) == (worker.pid, key, "put_and_wait")
    assert row.report.slots == 4
    assert read_workers(site.connection) == ()


def test_starting_warns_when_stopping_waits_shorter_than_a_tool_may_run() -> None:
    """O8-01."""
    warnings = check_start(tools, Options(grace_s=5), Keyring())

    assert any("stopping waits 5 s, but" in warning for warning in warnings)


def test_a_tool_that_declares_no_limit_ends_within_the_grace_that_nobody_chose() -> None:
    registry = Registry()

    @registry.tool
    def pay(cents: int) -> None: ...

    (published,) = registry.specs()

    assert published.timeout_ms == ToolSpec("pay").timeout_ms < Options().grace_s * 1000
    assert not [line for line in check_start(registry, Options(), Keyring()) if "stopping waits" in line]


def test_a_lease_that_protects_nothing_is_refused() -> None:
    """O2-07."""
    for lease_ms in (0, -1, 10):
        with pytest.raises(ValueError, match="protects nothing"):
            check_start(tools, Options(lease_ms=lease_ms), Keyring())


def test_a_burst_worker_ends_when_all_its_queues_are_empty(site: Site) -> None:
    registry, ran = Registry(), []
    for name in ("a", "b", "c"):
        registry.tool(name=name, queue=f"queue-{name}")(lambda name=name: ran.append(name))
    site.publish(registry)
    for name in ("c", "a", "c", "b"):
        site.submit(name)

    worker = Process(site.connection, registry, Options(concurrency=2, burst=True), keyring=Keyring())
    assert worker.live(Signals()) == 0

    assert sorted(ran) == ["a", "b", "c", "c"]


def test_no_lease_is_kept_for_a_claim_whose_slot_fails_before_its_handler(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G7: else the worker would renew the lease of a call that nobody runs, for as long as it lives."""
    registry, noted = Registry(), []
    registry.tool(name="look", effect="read")(lambda: None)

    def note(self: ConfirmedWatermark, fence: int) -> None:
        noted.append(fence)
        if len(noted) == 1:
            raise MemoryError("no memory between the claim and the handler")

    monkeypatch.setattr(ConfirmedWatermark, "note", note)
    monkeypatch.setattr(ConfirmedWatermark, "compare", lambda self, connection: True)
    site.publish(registry)
    key = site.submit("look")
    with site.worker_here(registry):
        site.wait_for(key, State.SUCCEEDED)

    assert len(noted) == 2


def test_two_workers_of_one_name_do_not_keep_each_other_out(site: Site) -> None:
    """A killed worker still stands in RQ's list when its supervisor starts the next one."""
    with site.worker(more=("--name", "billing-1")) as first:
        first.kill9()
        with site.worker(more=("--name", "billing-1")):
            site.wait_for(site.submit("put", what="x"), State.SUCCEEDED)


def test_it_works_as_process_1(site: Site) -> None:
    """O8-02: where no signal has a default action, and nobody else reaps."""
    namespaces = ("unshare", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc")
    if not shutil.which("unshare") or subprocess.run([*namespaces, "true"], capture_output=True).returncode:
        pytest.skip("process namespaces need `unshare` and the right to use it")
    command = (sys.executable, "-m", "toolonce.ops", "work", "--tools", TOOLS, "--redis", site.url)
    with Child(*namespaces, *command, "--namespace", site.namespace, env={VARIABLE: str(site.ledger.path)}) as outside:
        outside.wait_for_line("serves")
        key = site.submit("put_and_wait", what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        [inside] = Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text().split()
        os.kill(int(inside), signal.SIGTERM)
        outside.wait_for_line("draining")
        site.ledger.open_gate("x")

        assert outside.wait() == 0

    assert site.state(key) is State.SUCCEEDED


def _outlive_a_lease(site: Site, key: str) -> None:
    """Wait until the first lease would be over, and swept away."""
    first = site.record(key)
    assert first.lease_left_ms is not None
    swept = first.read_at + 2 * first.lease_left_ms
    wait_until(lambda: site.record(key).read_at > swept, description="the first lease would be over")
