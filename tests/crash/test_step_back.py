"""The store steps back: an older copy of its file is put back, as a restored backup or a failover to a stale replica
does. A worker that lived through it has seen more than the server now knows.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.processes import Child
from tests.support.processes.tools_under_test import tools
from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.store.model.errors import StoreWentBack
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.states import State
from toolonce.stream.harness.async_client import AsyncClient
from toolonce.stream.harness.client import Client
from toolonce.stream.inbox.consumer import Consumer
from toolonce.stream.turns.turn import ToolCall

AOF = "appendonlydir"


def _recover(site: Site, *words: str) -> dict[str, Any]:
    place = ("--redis", site.url, "--namespace", site.namespace, "--json", "--yes")
    with Child.python("-m", "toolonce.ops", "recover", *words, *place) as command:
        assert command.wait() == 0, command.output
        counts: dict[str, Any] = json.loads("\n".join(command.lines[command.lines.index("{") :]))
        return counts


def _restore(server: RealServer, copy: Path) -> None:
    server.kill9()
    shutil.rmtree(server.folder / AOF)
    shutil.copytree(copy, server.folder / AOF)
    server.start()


def _put(what: str) -> ToolCall:
    return ToolCall("put", {"what": what}, "call_0", "function", 0)


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

        _restore(own_server, copy)

        # The harness repeats what it has no answer to any more. The effects of these three have happened.
        again = [site.submit("put", what=f"lost {n}", turn_id=f"t{n + 1}") for n in range(3)]
        assert again == lost
        held = [site.wait_for(key, State.HELD, timeout=30) for key in again]
        read = site.wait_for(site.submit("look", what="around"), State.SUCCEEDED)
        flags = site.stats().flags

        assert {record.fields.reason for record in held} == {"store_went_back"}
        assert read.fields.attempt == 1
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
            _restore(own_server, copy)
            site.publish(tools)
            wait_until(lambda: "went_back" in site.stats().flags, 20, "the idle one tells")

            key = site.submit("put", what="x", turn_id="t1")
            record = site.wait_for(key, State.HELD, timeout=30)

    assert record.fields.reason == "store_went_back"
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
        _restore(own_server, copy)
        site.ledger.open_gate("x")

        worker.wait_for_line("its record is gone")
        again = site.submit("put_and_wait", what="x", turn_id="t1")
        record = site.wait_for(again, State.HELD)

    assert again == key
    assert record.fields.reason == "store_went_back"
    assert site.ledger.count("put x") == 1


def test_a_running_call_that_the_store_forgot_is_not_run_again_although_its_fence_was_given_out_twice(
    own_server: RealServer, own_site: Site
) -> None:
    """faults 5: others have claimed meanwhile, so that the mark is passed; the renewal of the lease tells."""
    site, copy = own_site, own_server.folder / "older"
    with site.worker(lease_ms=6_000) as first:
        shutil.copytree(own_server.folder / AOF, copy)
        lost = site.submit("put_and_wait", what="x", turn_id="t1")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        first.pause()
        _restore(own_server, copy)
        with site.worker() as second:
            site.wait_for(site.submit("look", what="one"), State.SUCCEEDED)
            site.wait_for(site.submit("look", what="two"), State.SUCCEEDED)  # more fences than were lost
            assert "went_back" not in site.stats().flags
            first.resume()
            wait_until(lambda: "went_back" in site.stats().flags, 20, "the first worker tells")
            again = site.submit("put_and_wait", what="x", turn_id="t1")
            record = site.wait_for(again, State.HELD)
            second.terminate()
        site.ledger.open_gate("x")
        first.wait_for_line("came too late")

    assert (again, record.fields.reason) == (lost, "store_went_back")
    assert site.ledger.count("put x") == 1


def _runs_elsewhere(site: Site, call: str, state: State) -> None:
    """By a worker that has not lived through the restore."""
    site.publish(tools)
    with site.worker():
        record = site.wait_for(call, state)
    assert record.fields.reason == ("store_went_back" if state is State.HELD else "")


def test_a_live_harness_tells_a_server_what_it_has_forgotten(own_server: RealServer, own_site: Site) -> None:
    """faults 5: no worker has lived through the restore; the harness holds an outcome with a higher fence."""
    site, copy = own_site, own_server.folder / "older"
    shutil.copytree(own_server.folder / AOF, copy)
    with Client(own_server.url, scope="s", namespace=site.namespace) as client:
        batch = client.submit_calls([_put("x")], turn_id="t1")
        _runs_elsewhere(site, batch.outcomes[0].key, State.SUCCEEDED)
        assert batch.wait(20)[0].state is State.SUCCEEDED
        _restore(own_server, copy)
        again = client.submit_calls([_put("x")], turn_id="t1")
        _runs_elsewhere(site, again.outcomes[0].key, State.HELD)

    assert site.ledger.count("put x") == 1


def test_a_live_async_harness_tells_a_server_what_it_has_forgotten(own_server: RealServer, own_site: Site) -> None:
    """faults 5: the same over asyncio."""
    site, copy = own_site, own_server.folder / "older"
    shutil.copytree(own_server.folder / AOF, copy)

    async def harness() -> None:
        async with AsyncClient(site.url, scope="s", namespace=site.namespace) as client:
            batch = await client.submit_calls([_put("x")], turn_id="t1")
            await asyncio.to_thread(_runs_elsewhere, site, batch.outcomes[0].key, State.SUCCEEDED)
            assert (await batch.wait(20))[0].state is State.SUCCEEDED
            _restore(own_server, copy)
            again = await client.submit_calls([_put("x")], turn_id="t1")
            await asyncio.to_thread(_runs_elsewhere, site, again.outcomes[0].key, State.HELD)

    asyncio.run(harness())
    assert site.ledger.count("put x") == 1


def test_a_live_inbox_consumer_tells_a_server_what_it_has_forgotten(own_server: RealServer, own_site: Site) -> None:
    """faults 5: every admission tells the consumer how far the store has come."""
    site, copy = own_site, own_server.folder / "older"
    shutil.copytree(own_server.folder / AOF, copy)

    def submit(consumer: Consumer) -> str:
        entry = {"scope": "talk", "turn": "t1", "calls": json.dumps([{"name": "put", "arguments": {"what": "x"}}])}
        with own_server.client() as client:
            client.xadd(site.connection.space.inbox("tenant"), entry)
            wait_until(lambda: consumer.step(0.05), description="the entry is admitted")
            (record,) = client.keys(f"{site.connection.space.root}call:*")
        return str(record).rpartition(":")[2]

    consumer = Consumer(site.connection, name="consumer", keyring=Keyring(), tenants=("tenant",))
    _runs_elsewhere(site, submit(consumer), State.SUCCEEDED)
    submit(consumer)  # answered from the store
    consumer.close()
    _restore(own_server, copy)
    _runs_elsewhere(site, submit(consumer), State.HELD)
    consumer.close()

    assert site.ledger.count("put x") == 1


def test_a_harness_that_waits_for_a_call_which_is_gone_is_told_and_the_repeat_is_held(
    own_server: RealServer, own_site: Site
) -> None:
    """faults 5: only the harness lives, and it holds no fence: what it was told of the call is stored no longer."""
    site, copy = own_site, own_server.folder / "older"
    shutil.copytree(own_server.folder / AOF, copy)
    batch = site.client.submit_calls([_put("x")], turn_id="t1")
    (queued,) = batch.outcomes
    with site.worker():
        site.wait_for(queued.key, State.SUCCEEDED)
    _restore(own_server, copy)

    with pytest.raises(StoreWentBack, match=queued.key):
        batch.wait(20)

    assert queued.key in site.stats().flags["went_back_because"]
    site.publish(tools)
    with site.worker():
        record = site.wait_for(site.client.submit_calls([_put("x")], turn_id="t1").outcomes[0].key, State.HELD)
    assert record.fields.reason == "store_went_back"
    assert site.ledger.count("put x") == 1


def test_a_settled_outcome_that_the_store_took_back_raises_the_flag_and_stays_the_harness_answer(
    own_server: RealServer, own_site: Site
) -> None:
    """faults 5: the claim is in the older copy, the end is not; no fence is higher."""
    site, copy = own_site, own_server.folder / "older"
    batch = site.client.submit_calls([ToolCall("put_and_wait", {"what": "x"}, "c", "function", 0)], turn_id="t1")
    with site.worker():
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        shutil.copytree(own_server.folder / AOF, copy)
        site.ledger.open_gate("x")
        assert batch.wait(20)[0].state is State.SUCCEEDED
    _restore(own_server, copy)

    assert batch.refresh()[0].state is State.SUCCEEDED
    assert batch.outcomes[0].key in site.stats().flags["went_back_because"]


def test_a_call_that_had_run_before_the_store_went_back_is_told_so_and_gives_its_value(
    own_server: RealServer, own_site: Site
) -> None:
    """faults 7: the loss is accepted for one call, and the other one is resolved: it does not run again."""
    site, copy = own_site, own_server.folder / "older"
    with site.worker() as worker:
        site.wait_for(site.submit("put", what="before", turn_id="t0"), State.SUCCEEDED)
        shutil.copytree(own_server.folder / AOF, copy)
        site.wait_for(site.submit("put", what="had run", turn_id="t1"), State.SUCCEEDED)
        _restore(own_server, copy)
        ran, waits = (site.submit("put", what=what, turn_id=f"t{n}") for n, what in enumerate(["had run", "new"], 1))
        for key in (ran, waits):
            site.wait_for(key, State.HELD)

        place = ("--redis", site.url, "--namespace", site.namespace, "--json")
        words = ("resolve", ran, "--succeeded", '"found"', "--reason", "in the books", *place)
        with Child.python("-m", "toolonce.ops", *words) as command:
            assert command.wait() == 0, command.output
        _recover(site, "--accept-loss", waits, "--reason", "not in the books")
        site.wait_for(waits, State.SUCCEEDED)
        assert "went_back" in site.stats().flags
        _recover(site, "--accept-loss", "--reason", "all compared")
        worker.terminate()

    assert site.outcome("t1").value == "found"
    assert (site.ledger.count("put had run"), site.ledger.count("put new")) == (1, 1)


def test_a_dead_workers_call_comes_to_rest_a_lease_after_the_servers_clock_went_back(site: Site) -> None:
    """faults 24: the clock was an hour further, and with it the end of the lease; a worker's sweep finds both out."""
    redis, root = site.connection.command, site.connection.space.root
    with site.worker() as dead:
        lost = site.submit("put_and_wait", what="x", turn_id="t1")
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        dead.kill9()
    redis("ZADD", f"{root}leases", int(redis("ZSCORE", f"{root}leases", lost)) + 3_600_000, lost)
    redis("HSET", f"{root}marks", "clock", site.record(lost).read_at + 3_600_000)

    with site.worker() as other:
        site.wait_for(lost, State.UNKNOWN)
        other.wait_for_line("leases_given_anew")
        site.wait_for(site.submit("put", what="y"), State.SUCCEEDED)

    assert "clock_back_at" in site.stats().flags
    assert site.ledger.count("put x") == 1
