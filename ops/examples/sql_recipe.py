"""The SQL recipe: the one way to a true exactly-once.

See it: ``python -m toolonce.ops.examples.sql_recipe``. It kills a worker right after the invoice is written, starts
another, and counts. Use it: ``toolonce up --tools toolonce.ops.examples.sql_recipe:tools``.

The tool stores the call's idempotency key in its own transaction, together with the business write. Whatever is killed
and whenever, the two are there both or not at all; so the reconcile can tell for certain what happened, and what did
not happen may be run again (``rerun_absent``). The table's primary key refuses a second write, even of a bug of ours.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from ...store.crashpoints import VARIABLE as CRASH_POINT
from ...store.model.outcomes import Outcome
from ...stream.harness.client import Client
from ...stream.turns.turn import ToolCall
from ...worker import Call, DidNotHappen, Registry

DATABASE = "INVOICES_DB"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS invoices (number INTEGER PRIMARY KEY, customer TEXT NOT NULL, cents INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS done (idempotency_key TEXT PRIMARY KEY, invoice INTEGER NOT NULL);
"""
tools = Registry()


@contextmanager
def database() -> Iterator[sqlite3.Connection]:
    """The books of this example: a file that the environment names."""
    with closing(sqlite3.connect(os.environ.get(DATABASE, "invoices.sqlite"), timeout=30)) as books:
        books.executescript(_SCHEMA)
        yield books


@tools.tool(effect="mutating", rerun_absent=True, timeout=20)
def create_invoice(customer: str, cents: int, *, call: Call) -> dict[str, int]:
    """Write an invoice.

    Args:
        customer: whom it is for.
        cents: the amount.
    """
    with database() as books, books:  # one transaction: the business write and the key, or neither
        invoice = books.execute("INSERT INTO invoices (customer, cents) VALUES (?, ?)", (customer, cents)).lastrowid
        books.execute("INSERT INTO done VALUES (?, ?)", (call.idempotency_key, invoice))
    assert invoice is not None
    return {"invoice": invoice}


@create_invoice.reconcile
def find_invoice(customer: str, cents: int, *, call: Call) -> dict[str, int]:
    """Look whether this very call has written its invoice."""
    with database() as books:
        row = books.execute("SELECT invoice FROM done WHERE idempotency_key = ?", (call.idempotency_key,)).fetchone()
    if row is None:
        raise DidNotHappen("no invoice was written for this call")
    return {"invoice": row[0]}


def main() -> int:
    """Kill a worker after the effect, let another one find out what happened, and count the invoices."""
    from . import environment  # not for workers, who import this module for its tools

    # A short lease: the death is noticed while one watches.
    here = ("sql_recipe", "--lease", "1s", "--log-level", "error")
    with environment.server() as server, Client(server.url, scope="example") as client:
        os.environ[DATABASE] = str(server.folder / "invoices.sqlite")  # for the workers, too
        with environment.worker(server.url, *here, **{CRASH_POINT: "after_effect"}) as doomed:
            environment.wait_for_tools(client)
            call = ToolCall("create_invoice", {"customer": "acme", "cents": 990}, "call_1", "function", 0)
            batch = client.submit_calls([call], turn_id="turn 1")
            doomed.wait(timeout=60)
        _say(f"the worker was killed after the effect: {_invoices()} invoice is written, and Redis knows of no result")
        with environment.worker(server.url, *here):
            [outcome] = batch.wait(timeout=60)
            _say(f"its lease ran out: the call is {outcome.state}, and nobody guesses")
            outcome = _wait_for_reconcile(client)
        _say(f"another worker looked for the call's key in the books: {outcome.state}, {outcome.value}")
        _say(f"invoices in the end: {_invoices()}")
        return 0 if (_invoices(), outcome.value) == (1, {"invoice": 1}) else 1


def _wait_for_reconcile(client: Client) -> Outcome:
    """The outcome once the worker has asked `find_invoice`, which it does by itself."""
    until = time.monotonic() + 60
    while True:
        [outcome] = client.batch("turn 1").outcomes
        if outcome.settled or time.monotonic() > until:
            return outcome
        time.sleep(0.05)


def _say(line: str) -> None:
    print(line, flush=True)  # at once, also into a pipe: there are seconds between the lines


def _invoices() -> int:
    with database() as books:
        (number,) = books.execute("SELECT count(*) FROM invoices").fetchone()
    return int(number)


if __name__ == "__main__":
    sys.exit(main())
