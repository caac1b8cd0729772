"""A server that is killed, or loses a record, while a handler works."""

from __future__ import annotations

from tests.support.processes.tools_under_test import thread_tools
from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.store.model.states import State


def test_a_result_is_kept_while_the_server_is_away_and_written_later(own_server: RealServer, own_site: Site) -> None:
    """O2-11: the effect happens while nobody can be told."""
    site = own_site
    with site.worker(lease_ms=1_000) as worker:
        key = site.submit("put_and_wait", what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        own_server.kill9()
        site.ledger.open_gate("x")
        worker.wait_for_line("leases could not be renewed|is kept until|no pointers for now")
        own_server.start()

        record = site.wait_for(key, State.SUCCEEDED, timeout=20)
        next_one = site.submit("put", what="y")
        site.wait_for(next_one, State.SUCCEEDED, timeout=20)

    assert record.fields.result == '"x"'
    assert site.ledger.count("put x") == 1


def test_a_record_that_vanished_under_a_running_call_is_noticed_at_its_end(site: Site) -> None:
    """O2-09, O8-03."""
    with site.worker() as worker:
        key = site.submit("put_and_wait", what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        site.connection.command("DEL", f"{site.connection.space.root}call:{key}")
        site.ledger.open_gate("x")

        worker.wait_for_line("its record is gone")

    assert site.ledger.count("put x") == 1


def test_a_worker_can_be_stopped_while_the_server_is_away(own_server: RealServer, own_site: Site) -> None:
    site = own_site
    with site.worker(lease_ms=1_000, more=("--grace", "200ms")) as worker:
        key = site.submit("put_and_wait", what="x")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        own_server.kill9()
        worker.terminate(timeout=40)
        own_server.start()

    with site.worker_here(thread_tools):
        site.wait_for(key, State.UNKNOWN)
    assert site.ledger.count("put x") == 1
