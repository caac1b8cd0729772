"""Faults of other systems that ran a call twice (group 1), on real workers; the store's part is in tests/store."""

from __future__ import annotations

import socket
import threading
import urllib.request
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.worker import Call, Registry
from toolonce.worker.tools.connection_errors import not_started


class _Shop(ThreadingHTTPServer):
    """Takes orders, and answers when it is told to."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.may_answer = threading.Event()
        super().__init__(("127.0.0.1", 0), _Till)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/orders"


class _Till(BaseHTTPRequestHandler):
    server: _Shop

    def do_POST(self) -> None:
        self.server.keys.append(self.headers["Idempotency-Key"])
        self.server.may_answer.wait(20)
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def shop() -> Iterator[_Shop]:
    with _Shop() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.may_answer.set()
        server.shutdown()
        thread.join()


def _ordering(urls: list[str], timeout: float) -> Registry:
    """A tool that orders at the first of these addresses, and takes each off the list once tried."""
    tools = Registry()

    @tools.tool(effect="mutating", retry=5)
    def order(what: str, *, call: Call) -> str:
        url = urls.pop(0) if len(urls) > 1 else urls[0]
        headers = {"Idempotency-Key": call.idempotency_key}
        request = urllib.request.Request(url, data=what.encode(), headers=headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=timeout):
                return what
        except OSError as error:
            raise not_started(error) from error

    return tools


def _closed_port() -> str:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}/orders"


def test_a_request_that_timed_out_is_in_doubt_and_is_not_sent_again(site: Site, shop: _Shop) -> None:
    """O1-05, O3-06 (d): the server was still working on the first one."""
    with site.worker_here(_ordering([shop.url], timeout=0.3)):
        record = site.wait_for(site.submit("order", what="tea", turn_id="t1"), State.UNKNOWN)
        shop.may_answer.set()
        again = site.submit("order", what="tea", turn_id="t1")

    assert site.state(again) is State.UNKNOWN
    assert shop.keys == [record.idempotency_key]


def test_a_refused_connection_runs_again_and_siblings_that_ended_do_not(site: Site, shop: _Shop) -> None:
    """O1-04, O3-06 (a): nothing was sent. Each sibling's outcome was stored when it ended, not with the turn."""
    shop.may_answer.set()
    entered: list[str] = []
    tools = _ordering([_closed_port(), shop.url], timeout=20)

    @tools.tool(effect="mutating")
    def note(what: str) -> str:
        entered.append(what)
        return what

    turn = [("note", {"what": "m1"}), ("note", {"what": "m2"}), ("order", {"what": "m3"})]
    with site.worker_here(tools):
        keys = site.submit_all(turn, turn_id="t1")
        records = [site.wait_for(key, State.SUCCEEDED, timeout=30) for key in keys]
        replay = site.submit_outcomes(turn, turn_id="t1")

    assert sorted(entered) == ["m1", "m2"]
    assert shop.keys == [records[2].idempotency_key]
    assert records[2].fields.attempt == 2
    assert [outcome.value for outcome in replay] == ["m1", "m2", "m3"]
    assert all(outcome.replayed for outcome in replay)


def test_a_wait_that_is_over_is_no_error_and_an_equal_call_is_held_behind_the_first(site: Site) -> None:
    """O1-06. The entry points the second call at the first; DESIGN holds it for a person where the tool says so."""
    entered: list[str] = []
    tools = Registry()
    go_on = threading.Event()

    @tools.tool(effect="mutating", hold_duplicates=True)
    def slow(what: str) -> str:
        entered.append(what)
        go_on.wait(20)
        return what

    with site.worker_here(tools):
        first = site.submit("slow", what="x", turn_id="t1")
        wait_until(lambda: entered, description="it runs")
        (pending,) = site.client.batch("t1").wait(timeout=0.05)
        second = site.submit("slow", what="x", turn_id="t2")
        held = site.wait_for(second, State.HELD)
        go_on.set()
        site.wait_for(first, State.SUCCEEDED)

    assert pending.pending
    assert pending.failure is None
    assert held.fields.reason == "duplicate"
    assert entered == ["x"]


def test_a_loop_that_submits_again_on_each_resume_has_one_effect(site: Site) -> None:
    """O1-08."""
    entered: list[str] = []
    tools = Registry()

    @tools.tool(effect="mutating")
    def write(what: str) -> str:
        entered.append(what)
        return what

    with site.worker_here(tools):
        keys = {site.submit("write", what="x", turn_id="step-1") for _ in range(5)}
        site.wait_for(keys.pop(), State.SUCCEEDED)
        resumed = site.submit_outcomes([("write", {"what": "x"})], turn_id="step-1")[0]

    assert not keys
    assert (resumed.value, resumed.replayed) == ("x", True)
    assert entered == ["x"]


def _is_later(site: Site, key: str, than: int) -> bool:
    return site.record(key).read_at > than


def test_work_that_outlasts_many_leases_is_not_started_again_by_a_redelivery(site: Site) -> None:
    """O1-03: run time is not limited by the lease; a redelivery beside a live lease is told to go away."""
    entered: list[str] = []
    tools = Registry()
    go_on = threading.Event()

    @tools.tool(effect="mutating", timeout=None)
    def long(what: str) -> str:
        entered.append(what)
        go_on.wait(30)
        return what

    with site.worker_here(tools, lease_ms=300), site.worker_here(tools, lease_ms=300):
        key = site.submit("long", what="x")
        first = site.wait_for(key, State.RUNNING)
        queue = site.connection.space.queue_key("default")
        for lease in range(1, 5):
            until = first.read_at + 300 * lease
            wait_until(partial(_is_later, site, key, until), description="a lease is over")
            site.connection.command("RPUSH", queue, first.idempotency_key)
            wait_until(lambda: not site.connection.command("EXISTS", queue), description="it was delivered again")
        go_on.set()
        record = site.wait_for(key, State.SUCCEEDED)

    assert entered == ["x"]
    assert record.fields.attempt == 1
    assert record.fence == first.fence
