"""The SQL recipe: the one way to a true exactly-once.

See it: ``python -m toolonce.ops.example_sql_recipe``. It kills a worker right after the invoice is written, starts
another, and counts. Use it: ``toolonce up --tools toolonce.ops.example_sql_recipe:tools``.

The tool stores the call's idempotency key in its own transaction, together with the business write. Whatever is killed
and whenever, the two are there both or not at all; so the read-back can tell for certain what happened, and what did
not happen may be run again (``rerun_absent``). The table's primary key refuses a second write, even of a bug of ours.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from ..store.crashpoints import VARIABLE as CRASH_POINT
from ..store.errors import NoToolsPublished
from ..store.outcomes import Outcome
from ..stream.batch import Batch
from ..stream.client import Client
from ..stream.turn import ToolCall
from ..worker import Call, DidNotHappen, Registry

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


@contextmanager
def worker(url: str, *, killed: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A worker process for this tool; one that kills itself (SIGKILL) at a named point, where one is given."""
    tool = f"{__package__}.example_sql_recipe:tools"
    command = [sys.executable, "-m", __package__, "work", "--tools", tool, "--redis", url]
    options = ["--lease", "1s", "--log-level", "error"]  # a short lease: the death is noticed while one watches
    environment = os.environ | {CRASH_POINT: killed}
    with subprocess.Popen([*command, *options], env=environment, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def main() -> int:
    """Kill a worker after the effect, let another one find out what happened, and count the invoices."""
    from .embedded import transient_server
    from .told_to_end import told_to_end

    with told_to_end(), transient_server() as server, Client(server.url, scope="example") as client:
        os.environ[DATABASE] = str(server.folder / "invoices.sqlite")  # for the workers, too
        with worker(server.url, killed="after_effect") as doomed:
            batch = _submitted(client)
            doomed.wait(timeout=60)
        _say(f"the worker was killed after the effect: {_invoices()} invoice is written, and Redis knows of no result")
        with worker(server.url):
            [outcome] = batch.wait(timeout=60)
            _say(f"its lease ran out: the call is {outcome.state}, and nobody guesses")
            outcome = _read_back(client)
        _say(f"another worker looked for the call's key in the books: {outcome.state}, {outcome.value}")
        _say(f"invoices in the end: {_invoices()}")
        return 0 if (_invoices(), outcome.value) == (1, {"invoice": 1}) else 1


def _submitted(client: Client) -> Batch:
    call = ToolCall("create_invoice", {"customer": "acme", "cents": 990}, "call_1", "function", 0)
    while True:
        try:
            return client.submit_calls([call], turn_id="turn 1")
        except NoToolsPublished:  # the worker publishes its tools when it starts
            time.sleep(0.05)


def _read_back(client: Client) -> Outcome:
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
