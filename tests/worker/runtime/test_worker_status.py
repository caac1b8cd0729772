"""Who lives: a worker's last heartbeat counts in seconds, by Redis time, and not how long it stays listed."""

from __future__ import annotations

import signal

import pytest

from tests.support.processes.processes import Child
from tests.support.processes.workers import Site
from tests.support.store.scene import spec
from tests.support.wait import wait_until
from toolonce.ops.commands.store.doctor import examine
from toolonce.ops.commands.store.workers import as_json
from toolonce.ops.health.findings import Finding
from toolonce.ops.health.health_snapshot import take
from toolonce.store.operations.tools import publish
from toolonce.worker.runtime.registration import SIGN_OF_LIFE_S
from toolonce.worker.runtime.worker_status import BEATS_MISSED, LISTED_S, read_workers


def found(site: Site) -> dict[str, Finding]:
    return {finding.code: finding for finding in examine(take(site.connection))}


def let_pass(site: Site, seconds: float) -> None:
    """As if so much time had passed without a heartbeat: the registration's own time is moved."""
    [row] = read_workers(site.connection)
    key = site.connection.space.rq_worker(row.name)
    site.connection.command("PEXPIRE", key, int(site.connection.command("PTTL", key)) - round(seconds * 1000))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_killed_or_frozen_worker_is_silent_after_seconds_and_counts_for_nobody(
    site: Site, how: signal.Signals
) -> None:
    """Faults 17: it counted as alive for as long as RQ keeps it listed, 110 s."""
    with site.worker() as worker:
        assert {"silent_worker", "no_worker"} & found(site).keys() == set()
        worker.signal(how)
        if how is signal.SIGKILL:
            worker.wait()
        let_pass(site, BEATS_MISSED * SIGN_OF_LIFE_S + 1)

        [row] = read_workers(site.connection)
        assert (row.is_silent, as_json(row)["silent"], row.pid) == (True, True, worker.pid)
        assert BEATS_MISSED * SIGN_OF_LIFE_S < row.heard_s < LISTED_S
        said = found(site)
        assert f"pid {worker.pid}" in said["silent_worker"].what
        assert {"no_worker"} <= said.keys()
        if how is signal.SIGSTOP:
            worker.signal(signal.SIGCONT)
            wait_until(lambda: not read_workers(site.connection)[0].is_silent, description="it beats again")
            assert "no_worker" not in found(site)


def test_a_machine_whose_clock_is_wrong_is_not_silent_for_it(site: Site) -> None:
    """Faults 17: two machines' clocks must not decide it."""
    with site.worker():
        [row] = read_workers(site.connection)
        site.connection.command(
            "HSET", site.connection.space.rq_worker(row.name), "last_heartbeat", "2001-01-01T00:00:00.000000Z"
        )

        [row] = read_workers(site.connection)
        assert not row.is_silent
        assert row.heard_s < LISTED_S / 2


def test_a_container_sees_its_own_worker_and_not_that_of_another(site: Site) -> None:
    """Faults 17: the health check of the compose file."""
    check = ["-m", "toolonce.ops", "workers", "--here", "--redis", site.url, "--namespace", site.namespace]

    def healthy() -> bool:
        with Child.python(*check) as asked:
            return asked.wait(30) == 0

    assert not healthy()
    with site.worker() as worker:
        assert healthy()
        [row] = read_workers(site.connection)
        site.connection.command("HSET", site.connection.space.rq_worker(row.name), "hostname", "another")
        assert not healthy()
        site.connection.command("HSET", site.connection.space.rq_worker(row.name), "hostname", row.hostname)
        worker.signal(signal.SIGKILL)
        worker.wait()
        let_pass(site, BEATS_MISSED * SIGN_OF_LIFE_S + 1)
        assert not healthy()


def test_a_call_that_is_held_for_want_of_a_worker_is_a_warning_at_once(site: Site) -> None:
    """Faults 17: the doctor found nothing until the call had expired."""
    site.connection.run(publish(site.connection.space, [spec("elsewhere")]))
    with site.worker():
        key = site.submit("elsewhere")
        wait_until(lambda: site.state(key) == "held", description="the worker has no such tool")

        assert "elsewhere" in found(site)["held_no_worker"].what
