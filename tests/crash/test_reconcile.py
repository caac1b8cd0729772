"""A reconcile that cannot tell is asked again, each time after a longer wait, for as long as the call is unknown."""

from __future__ import annotations

from itertools import pairwise

from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.worker import Registry


def test_the_waits_between_reconciles_that_cannot_tell_grow(site: Site) -> None:
    asked: list[str] = []
    tools = Registry()

    @tools.tool(effect="mutating")
    def pay(what: str) -> None:
        raise ConnectionResetError("nobody knows")

    @pay.reconcile
    def find(what: str) -> None:
        asked.append(what)
        raise TimeoutError("the bank is closed")

    with site.worker_here(tools):
        key = site.submit("pay", what="rent")
        wait_until(lambda: len(asked) >= 3, 30, "it is asked three times")
        wait_until(lambda: len(site.record(key).history) >= 6, 10, "and the third answer is noted")

    record = site.record(key)
    at = [event["at"] for event in record.history if event["op"] == "reconcile"]
    waits = [later - earlier for earlier, later in pairwise(at)]
    assert record.state is State.UNKNOWN
    assert waits[0] >= 1_000
    assert waits[1] >= 2_000
    due = float(site.connection.command("ZSCORE", f"{{{site.namespace}}}:reconcile:pay", key))
    assert due - at[2] == 4_000
