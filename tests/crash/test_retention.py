"""How long answers and marks are kept, on a real worker: never so short that a call could run again."""

from __future__ import annotations

import pytest

from tests.support.processes.processes import Child
from tests.support.processes.workers import TOOLS, Site
from tests.support.wait import wait_until
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.states import State
from toolonce.store.operations.recovery import DAY_MS, Retention
from toolonce.worker import Registry, ToolError
from toolonce.worker.runtime.preflight import check_start
from toolonce.worker.runtime.process import Options

BRIEF = Retention(body_ms=60_000, tombstone_ms=60_000, states={State.FAILED: 400})


def _brief_tools(entered: list[str]) -> Registry:
    """Tools whose calls are over soon, so that they may be forgotten soon."""
    tools = Registry()

    @tools.tool(effect="mutating", deadline=0.3, timeout=0.1)
    def put(what: str) -> str:
        entered.append(what)
        return what

    @tools.tool(effect="mutating", deadline=0.3, timeout=0.1)
    def fail(what: str) -> None:
        entered.append(what)
        raise ToolError(f"no {what[:10]}")

    return tools


@pytest.mark.parametrize(
    ("keep", "complaint"),
    [
        (Retention(body_ms=399), "kept for 0.399 s"),
        (Retention(states={State.FAILED: 399}), "kept for 0.399 s"),
        (Retention(tombstone_ms=DAY_MS), "shorter than its body"),
    ],
)
def test_a_retention_in_which_a_call_could_run_again_is_refused(keep: Retention, complaint: str) -> None:
    """O3-10: a mark must live longer than every retry and backlog."""
    with pytest.raises(ValueError, match=complaint):
        check_start(_brief_tools([]), Options(retention=keep), Keyring())


def test_a_retention_as_long_as_a_call_may_last_is_taken() -> None:
    check_start(_brief_tools([]), Options(retention=Retention(body_ms=400)), Keyring())


def test_a_worker_does_not_start_with_too_short_a_retention(site: Site) -> None:
    command = ("-m", "toolonce.ops", "work", "--tools", TOOLS, "--redis", site.url, "--keep", "failed=5s")
    with Child.python(*command) as worker:
        code = worker.wait()

    assert code == 2
    assert "settled calls are kept for 5 s" in worker.output


def test_each_state_is_forgotten_after_its_own_time_and_a_late_delivery_finds_the_mark(site: Site) -> None:
    """O3-10: DESIGN keeps a tombstone where the entry would also allow "expired, not run again"."""
    entered: list[str] = []
    with site.worker_here(_brief_tools(entered), retention=BRIEF):
        kept, forgotten = (
            site.submit("put", what="kept", turn_id="t1"),
            site.submit("fail", what="gone", turn_id="t2"),
        )
        site.wait_for(kept, State.SUCCEEDED)
        wait_until(lambda: site.record(forgotten).fields.forgotten, description="the failure's body goes")
        job = site.record(forgotten).idempotency_key
        site.connection.command("RPUSH", site.connection.space.queue_key("default"), job)
        again = site.submit("fail", what="gone", turn_id="t2")
        queue = site.connection.space.queue_key("default")
        wait_until(lambda: not site.connection.command("EXISTS", queue), description="the late delivery is taken")
        site.wait_for(site.submit("put", what="after"), State.SUCCEEDED)

    assert again == forgotten
    assert site.state(forgotten) is State.FAILED
    assert sorted(entered) == ["after", "gone", "kept"]
    assert site.record(kept).fields.result == '"kept"'


def test_a_flood_of_failures_leaves_only_marks_behind(site: Site) -> None:
    """O8-04."""
    entered: list[str] = []
    with site.worker_here(_brief_tools(entered), retention=BRIEF, concurrency=8):
        keys = [site.submit("fail", what=f"{n} " + "x" * 20_000) for n in range(100)]
        wait_until(lambda: all(site.record(key).fields.forgotten for key in keys), 60, "all bodies are forgotten")

    root = site.connection.space.root
    sizes = [site.connection.command("MEMORY", "USAGE", f"{root}call:{key}", "SAMPLES", 0) for key in keys]
    assert max(sizes) < 2_500
    assert not any(site.connection.command("EXISTS", f"{root}history:{key}") for key in keys)
    assert site.stats().balanced
    assert site.stats().counts["admitted"] == len(keys)
