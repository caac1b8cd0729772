"""What a killed worker held goes to the next in line: slots of limits, and turns in a lane."""

from __future__ import annotations

from pathlib import Path

from tests.support.crash.process_starter import ProcessStarter
from tests.support.crash.site import CrashSite
from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations import operators
from toolonce.store.operations.controls import limit
from toolonce.worker import Registry, ToolError


def test_a_killed_holders_slot_is_passed_on_within_a_lease(site: Site, starter: ProcessStarter) -> None:
    """Five at most over all workers: the fifth slot is held by a process that is gone."""
    first = site.submit("five_at_most", what=0)
    with starter.work(site, crash="after_effect") as worker:
        worker.wait_until_gone()
    waiting = [site.submit("five_at_most", what=n) for n in range(1, 12)]
    with starter.work(site):
        for key in waiting:
            site.wait_for(key, State.SUCCEEDED, timeout=30)
        site.wait_for(first, State.UNKNOWN, timeout=30)  # four slots may serve all the others within its lease

    assert not site.connection.command("KEYS", f"{{{site.namespace}}}:slots:*")
    assert not site.connection.command("KEYS", f"{{{site.namespace}}}:waiting:*")


def test_a_killed_holders_slot_of_a_tenant_is_passed_on(site: Site, starter: ProcessStarter) -> None:
    site.connection.run(limit(site.connection.space, "tenant:tenant-1", 1, operators.Actor("ann")))
    held = site.submit("put", what="held")
    with starter.work(site, crash="after_claim") as worker:
        worker.wait_until_gone()
    next_one = site.submit("put", what="next")
    with starter.work(site):
        site.wait_for(next_one, State.SUCCEEDED)

    assert site.state(held) is State.UNKNOWN
    assert site.ledger.lines() == ["put next"]


def test_a_lane_stops_at_a_call_in_doubt_and_goes_on_when_a_person_has_resolved_it(
    starter: ProcessStarter, tmp_path: Path
) -> None:
    with CrashSite(starter, tmp_path) as site:
        first, behind = site.submit("mutating", {"lane": "one"})
        site.worker(crash="after_effect").wait_until_gone()
        site.worker()
        wait_until(lambda: site.state(first) is State.UNKNOWN, 30, "the first is in doubt")
        reason = site.record(behind).fields.reason
        seen = operators.Expected(first, State.UNKNOWN, site.record(first).fence)
        site.store.run(operators.resolve(site.store.space, seen, '"by hand"', operators.Actor("ann", "asked")))
        wait_until(lambda: site.state(behind) is State.SUCCEEDED, 30, "the one behind goes on")

        assert reason == "order"
        assert site.ledger.effects(first) == 1
        assert site.ledger.effects(behind) == 1


def test_a_lane_goes_on_after_a_failure(site: Site) -> None:
    entered: list[str] = []
    tools = Registry()

    @tools.tool(effect="mutating", order_by="path")
    def edit(path: str, what: str) -> None:
        entered.append(what)
        if what == "bad":
            raise ToolError("no such line")

    with site.worker_here(tools):
        keys = site.submit_all([("edit", {"path": "a", "what": what}) for what in ("bad", "good")])
        site.wait_for(keys[1], State.SUCCEEDED)

    assert entered == ["bad", "good"]
