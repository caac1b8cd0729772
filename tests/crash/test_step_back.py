"""The store steps back: an older copy of its file is put back, as a restored backup or a failover to a stale replica
does. A worker that lived through it has seen more than the server now knows.
"""

from __future__ import annotations

import json
import shutil

from tests.support.processes import Child
from tests.support.redis_server import RealServer
from tests.support.tools_under_test import tools
from tests.support.wait import wait_until
from tests.support.workers import Site
from toolonce.store.states import State

AOF = "appendonlydir"


def _recover(site: Site, *words: str) -> dict[str, int]:
    place = ("--redis", site.url, "--namespace", site.namespace, "--json", "--yes")
    with Child.python("-m", "toolonce.ops", "recover", *words, *place) as command:
        assert command.wait() == 0, command.output
        counts: dict[str, int] = json.loads("\n".join(command.lines[command.lines.index("{") :]))
        return counts


def _scripts_run(server: RealServer) -> int:
    with server.client() as client:
        return int(client.info("commandstats")["cmdstat_evalsha"]["calls"])


def test_after_a_step_back_mutating_calls_wait_for_a_persons_word_and_reads_go_on(
    own_server: RealServer, own_site: Site
) -> None:
    """G1 where the server has forgotten: the live worker raises the flag; nobody has to notice."""
    site, copy = own_site, own_server.folder / "older"
    with site.worker(more=("--grace", "2s")) as worker:
        site.wait_for(site.submit("put", what="before", turn_id="t0"), State.SUCCEEDED)
        shutil.copytree(own_server.folder / AOF, copy)
        lost = [site.submit("put", what=f"lost {n}", turn_id=f"t{n + 1}") for n in range(3)]
        for key in lost:
            site.wait_for(key, State.SUCCEEDED)

        own_server.kill9()
        shutil.rmtree(own_server.folder / AOF)
        shutil.copytree(copy, own_server.folder / AOF)
        own_server.start()

        # The harness repeats what it has no answer to any more. The effects of these three have happened.
        again = [site.submit("put", what=f"lost {n}", turn_id=f"t{n + 1}") for n in range(3)]
        assert again == lost
        held = [site.wait_for(key, State.HELD, timeout=30) for key in again]
        read = site.wait_for(site.submit("look", what="around"), State.SUCCEEDED)
        flags = site.stats().flags

        assert {record.stored["reason"] for record in held} == {"store_went_back"}
        assert read.stored["attempt"] == "1"
        assert int(flags["went_back_from"]) > int(flags["went_back_to"])
        assert [site.ledger.count(f"put lost {n}") for n in range(3)] == [1, 1, 1]

        site.wait_for(site.submit("put", what="before", turn_id="t0"), State.SUCCEEDED)  # still answered
        _recover(site, "--accept-loss", "--reason", "compared with the books: none of the three is there")
        for key in again:
            site.wait_for(key, State.SUCCEEDED)
        worker.terminate()

    # A person has taken responsibility: now, and only now, they ran again.
    assert [site.ledger.count(f"put lost {n}") for n in range(3)] == [2, 2, 2]
    assert site.ledger.count("put before") == 1
    assert "went_back" not in site.stats().flags
    assert site.stats().flags["loss_accepted_because"].startswith("compared with the books")


def test_an_idle_worker_tells_a_server_what_it_has_forgotten(own_server: RealServer, own_site: Site) -> None:
    """Nobody claims anything: the one that ran the calls is gone, and another one has only watched."""
    site, copy = own_site, own_server.folder / "older"
    shutil.copytree(own_server.folder / AOF, copy)
    with site.worker() as busy:
        site.wait_for(site.submit("put", what="x", turn_id="t1"), State.SUCCEEDED)
        with site.worker() as idle:
            idle.wait_for_line("serves")
            busy.kill9()
            sent = _scripts_run(own_server)
            wait_until(lambda: _scripts_run(own_server) > sent + 20, description="the idle one sweeps")
            own_server.kill9()
            shutil.rmtree(own_server.folder / AOF)
            shutil.copytree(copy, own_server.folder / AOF)
            own_server.start()
            site.publish(tools)
            wait_until(lambda: "went_back" in site.stats().flags, 20, "the idle one tells")

            key = site.submit("put", what="x", turn_id="t1")
            record = site.wait_for(key, State.HELD, timeout=30)

    assert record.stored["reason"] == "store_went_back"
    assert site.ledger.count("put x") == 1


def test_a_settle_for_a_call_that_the_store_forgot_overwrites_nothing_and_is_said_aloud(
    own_server: RealServer, own_site: Site
) -> None:
    """O2-09: lock and record are both gone, and their holder notices at its end."""
    site, copy = own_site, own_server.folder / "older"
    with site.worker() as worker:
        site.wait_for(site.submit("put", what="first"), State.SUCCEEDED)
        shutil.copytree(own_server.folder / AOF, copy)
        key = site.submit("put_and_wait", what="x", turn_id="t1")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        own_server.kill9()
        shutil.rmtree(own_server.folder / AOF)
        shutil.copytree(copy, own_server.folder / AOF)
        own_server.start()
        site.ledger.open_gate("x")

        worker.wait_for_line("its record is gone")
        again = site.submit("put_and_wait", what="x", turn_id="t1")
        record = site.wait_for(again, State.HELD)

    assert again == key
    assert record.stored["reason"] == "store_went_back"
    assert site.ledger.count("put x") == 1
