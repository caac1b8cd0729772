"""The SQL recipe with a real server and a worker that is killed: written once, and known to be."""

from __future__ import annotations

import signal

import pytest

from tests.support.processes.leftovers import leftover_processes
from tests.support.processes.processes import Child
from tests.support.processes.workers import LEASE_MS, Site
from tests.support.wait import wait_until
from toolonce.ops.examples import sql_recipe as recipe
from toolonce.store.crashpoints import VARIABLE
from toolonce.store.model.states import State


@pytest.mark.parametrize("point", ["after_claim", "after_effect"])
def test_a_killed_worker_leaves_one_invoice_and_a_settled_call(
    site: Site, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setenv(recipe.DATABASE, str(site.ledger.path.parent / "books.sqlite"))
    site.publish(recipe.tools)
    key = site.submit("create_invoice", customer="acme", cents=990)
    command = (
        "-m", "toolonce.ops", "work", "--tools", "toolonce.ops.examples.sql_recipe:tools", "--redis", site.url,
        "--namespace", site.namespace, "--lease", f"{LEASE_MS}ms",
    )  # fmt: skip
    with Child.python(*command, env={VARIABLE: point}) as doomed:
        assert doomed.wait() == -9

    with site.worker_here(recipe.tools):
        record = site.wait_for(key, State.SUCCEEDED)

    assert record.fields.result.replace(" ", "") == '{"invoice":1}'
    with recipe.database() as books:
        assert books.execute("SELECT count(*) FROM invoices").fetchone() == (1,)


def test_the_recipe_shows_itself_when_it_is_run() -> None:
    with Child.python("-m", "toolonce.ops.examples.sql_recipe") as example:
        example.wait_for_line("killed after the effect: 1 invoice")
        example.wait_for_line("the call is unknown")
        example.wait_for_line(r"succeeded, \{'invoice': 1\}")
        example.wait_for_line("invoices in the end: 1")
        assert example.wait() == 0


def test_a_recipe_that_is_terminated_leaves_no_worker_behind() -> None:
    def workers() -> list[str]:
        return [command for command in leftover_processes().values() if "sql_recipe:tools" in command]

    with Child.python("-m", "toolonce.ops.examples.sql_recipe") as example:
        example.wait_for_line("killed after the effect: 1 invoice")
        wait_until(workers, description="another worker is there")
        example.signal(signal.SIGTERM)
        assert example.wait() == 128 + signal.SIGTERM

    wait_until(lambda: not workers(), description="no worker is left")
