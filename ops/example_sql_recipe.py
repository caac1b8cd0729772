"""The SQL recipe: the one way to a true exactly-once.

Run it: ``toolonce up --tools toolonce.ops.example_sql_recipe:tools``

The tool stores the call's idempotency key in its own transaction, together with the business write. Whatever is killed
and whenever, the two are there both or not at all; so the read-back can tell for certain what happened, and what did
not happen may be run again (``rerun_absent``). The table's primary key refuses a second write, even of a bug of ours.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

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
