"""Whatever one reconcile does concerns its own call: others are asked, its worker lives, and people see it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.support.processes.tools_under_test import effect, thread_tools
from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations.recovery import reconcile, reconcile_later
from toolonce.worker import Call, DidNotHappen, Registry, ToolError
from toolonce.worker.maintenance.process_identity import ENDED, identity, is_gone

HOLD = threading.Event()


class StrayInterrupt(BaseException):
    """None that anybody expects."""


def hang(call: Call) -> Any:
    HOLD.wait(60)


def leave(call: Call) -> Any:
    sys.exit(3)


def begin(call: Call) -> Any:
    call.begin()


def stop(call: Call) -> Any:
    raise StrayInterrupt


def interrupt(call: Call) -> Any:
    raise KeyboardInterrupt


def heard_of(site: Site, key: str) -> str | None:
    return site.record(key).fields.heard


def doubtful(tools: Registry, name: str, ask: Callable[[Call], Any], **options: Any) -> None:
    """A tool whose calls are all in doubt, and how it is asked."""

    @tools.tool(name=name, effect="mutating", **options)
    def act(n: int) -> None:
        raise ConnectionResetError("who knows")

    @act.reconcile
    def find(n: int, *, call: Call) -> Any:
        effect(f"asked {name} {n}")
        return ask(call)


@pytest.mark.parametrize("bad", [hang, leave, begin, stop, interrupt])
def test_one_bad_reconcile_does_not_keep_others_from_being_asked(site: Site, bad: Callable[[Call], Any]) -> None:
    """faults 14: one that hung, exited or said begin ended all reconciles of its worker, silently."""
    tools = Registry()
    doubtful(tools, "bad", bad)
    doubtful(tools, "good", lambda call: "it is there")
    with site.worker_here(tools):
        first = site.submit("bad", n=1)
        wait_until(lambda: site.ledger.count("asked bad"), description="the bad one is asked")
        record = site.wait_for(site.submit("good", n=2), State.SUCCEEDED)
        again = site.wait_for(site.submit("good", n=3), State.SUCCEEDED)

    left = site.state(first)
    HOLD.set()

    assert (record.fields.result, again.fields.result) == ('"it is there"', '"it is there"')
    assert left is State.UNKNOWN


@pytest.mark.parametrize("bad", [leave, begin, stop])
def test_what_a_reconcile_lets_out_is_told_and_it_is_asked_again(
    site: Site, caplog: pytest.LogCaptureFixture, bad: Callable[[Call], Any]
) -> None:
    """faults 14: in the log, in the call's history and in what `toolonce call` reads."""
    tools = Registry()
    doubtful(tools, "bad", bad)
    with site.worker_here(tools):
        key = site.submit("bad", n=1)
        wait_until(lambda: site.ledger.count("asked bad") >= 2, description="it is asked again")
        wait_until(lambda: site.record(key).fields.heard, description="what it said is noted")
    record = site.record(key)

    assert [event["op"] for event in record.history][:4] == ["admit", "claim", "settle", "reconcile"]
    assert record.fields.heard
    assert "still in doubt" in caplog.text


def test_a_reconcile_that_hangs_is_given_up_at_its_limit_and_its_late_answer_counts(site: Site) -> None:
    """faults 14: its tool's run limit is its own limit, too."""
    tools, may_answer = Registry(), threading.Event()
    doubtful(tools, "slow", lambda call: may_answer.wait(60) and "found late", timeout=0.2)
    with site.worker_here(tools) as process:
        key = site.submit("slow", n=1)
        wait_until(lambda: "no answer within 0.2 s" in (site.record(key).fields.heard or ""), description="given up")
        assert process.name
        may_answer.set()
        record = site.wait_for(key, State.SUCCEEDED)

    assert record.fields.result == '"found late"'


def test_a_failure_of_the_tool_s_own_kind_does_not_settle_a_call_in_doubt(site: Site) -> None:
    """faults 14, G3: only `DidNotHappen` says that it did not happen."""
    tools = Registry()

    def fail(call: Call) -> Any:
        raise ToolError("no such booking")

    doubtful(tools, "bad", fail)
    with site.worker_here(tools):
        key = site.submit("bad", n=1)
        wait_until(lambda: site.record(key).fields.heard, description="what it said is noted")

    assert site.state(key) is State.UNKNOWN


def test_a_reconcile_in_a_process_that_dies_or_hangs_leaves_its_worker_and_others_alone(site: Site) -> None:
    """faults 14: os._exit, and a match that holds the interpreter beyond the limit."""
    with site.worker(slots=2):
        keys = [site.submit(name, what="x") for name in ("doubt_exit_hard", "doubt_spin")]
        good = site.wait_for(site.submit("doubt_good", what="y"), State.SUCCEEDED)
        for key in keys:
            wait_until(partial(heard_of, site, key), description="what became of it is noted")

    assert good.fields.result == '"found y"'
    assert [site.state(key) for key in keys] == [State.UNKNOWN, State.UNKNOWN]


def test_many_equal_answers_do_not_push_a_call_out_of_its_own_history(site: Site) -> None:
    """faults 14: a call may be in doubt for days, and is asked about every ten minutes."""
    tools = Registry()
    doubtful(tools, "bad", stop)
    site.publish(tools)
    with site.worker_here(tools):
        key = site.submit("bad", n=1)
        wait_until(lambda: site.record(key).fields.heard, description="it was asked")
    space = site.connection.space
    for _ in range(300):
        site.connection.run(reconcile_later(space, key, wait_ms=0, heard="the same"))
        site.connection.run(reconcile(space, ["bad"], lease_ms=1_000, worker="one"))
    history = site.record(key).history

    assert [event["op"] for event in history[:3]] == ["admit", "claim", "settle"]
    assert len(history) < 30
    assert history[-1]["count"] > 250


def test_only_the_kernel_s_word_makes_a_process_known_to_be_gone() -> None:
    """faults 10."""
    mine = identity()
    around, pid, started = mine.rpartition(" ")[0].rpartition(" ")[0], *mine.split()[-2:]

    assert not is_gone(mine)
    assert is_gone(ENDED)
    assert is_gone(f"{around} {pid} {int(started) - 1}")
    assert is_gone(f"{around} {2**22 + 5} 1")
    assert not is_gone(f"another-boot pid:[1] {2**22 + 5} 1")
    assert not is_gone("")
    assert not is_gone("garbage")


def test_a_call_that_may_run_again_is_not_reconciled_before_its_worker_is_known_to_be_gone(site: Site) -> None:
    """faults 10: a paused attempt would have its effect beside the second one's."""
    with site.worker(slots=1) as first:
        key = site.submit("put_again", what="x")
        wait_until(lambda: site.ledger.count("entered x"), description="it is inside")
        first.pause()
        with site.worker_here(thread_tools):
            site.wait_for(key, State.UNKNOWN)
            wait_until(lambda: "known to be gone" in (site.record(key).fields.heard or ""), description="it waits")
            asked = site.ledger.count("asked x")
            site.ledger.open_gate("x")
            first.resume()
            record = site.wait_for(key, State.SUCCEEDED)

    assert (asked, site.ledger.count("put x"), record.fields.attempt) == (0, 1, 1)


def test_a_call_that_may_run_again_is_reconciled_once_its_worker_was_killed(site: Site) -> None:
    """faults 10: the same host no longer has the process, so nothing of it can come any more."""
    with site.worker(slots=1) as first:
        key = site.submit("put_again", what="x")
        wait_until(lambda: site.ledger.count("entered x"), description="it is inside")
        first.kill9()
    site.ledger.open_gate("x")
    with site.worker_here(thread_tools):
        record = site.wait_for(key, State.SUCCEEDED)

    assert (site.ledger.count("put x"), record.fields.attempt) == (1, 2)


def test_what_a_worker_says_has_ended_is_asked_about_at_once(site: Site) -> None:
    """faults 10: a handler that raised is at work no longer, wherever its worker is."""
    tools = Registry()

    @tools.tool(effect="mutating", rerun_absent=True)
    def act(call: Call) -> str:
        if call.attempt == 1:
            raise ConnectionResetError("who knows")
        return "done"

    @act.reconcile
    def find() -> None:
        raise DidNotHappen("not there")

    with site.worker_here(tools):
        record = site.wait_for(site.submit("act"), State.SUCCEEDED)

    assert record.fields.attempt == 2
