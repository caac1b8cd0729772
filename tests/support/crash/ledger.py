"""Effects, counted outside Redis: a SQLite file that any number of processes write, and that outlives all of them.

Decides nothing. An effect is counted when it is committed, so a process killed after it has had it for certain.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

_TABLES = """
CREATE TABLE IF NOT EXISTS entries (at INTEGER PRIMARY KEY, call TEXT, tool TEXT, fence INTEGER, attempt INTEGER);
CREATE TABLE IF NOT EXISTS effects (at INTEGER PRIMARY KEY, call TEXT, tool TEXT, fence INTEGER, ikey TEXT);
"""


@dataclass(frozen=True, slots=True)
class Doubled:
    """A call whose effect happened more than once."""

    call: str
    tool: str
    times: int


class CrashLedger:
    """The effects of one test or one chaos run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path) -> CrashLedger:
        """Make the file; once, before other processes write it."""
        ledger = cls(path)
        with closing(sqlite3.connect(path, timeout=60)) as database:
            # Our processes die, the machine does not: no fsync is needed for what the test is about.
            database.executescript(f"PRAGMA journal_mode=WAL; {_TABLES}")
        return ledger

    def enter(self, call: str, tool: str, fence: int, attempt: int) -> None:
        """A handler was entered."""
        with self._writing() as database:
            database.execute(
                "INSERT INTO entries (call, tool, fence, attempt) VALUES (?, ?, ?, ?)", (call, tool, fence, attempt)
            )

    def happen(self, call: str, tool: str, fence: int, idempotency_key: str) -> None:
        """The effect: it is there from now on, whatever becomes of the process."""
        with self._writing() as database:
            database.execute(
                "INSERT INTO effects (call, tool, fence, ikey) VALUES (?, ?, ?, ?)",
                (call, tool, fence, idempotency_key),
            )

    def has(self, idempotency_key: str) -> bool:
        """What a reconcile asks: is there an effect of this key?"""
        return self._number("SELECT count(*) FROM effects WHERE ikey = ?", idempotency_key) > 0

    def entries(self, call: str) -> int:
        return self._number("SELECT count(*) FROM entries WHERE call = ?", call)

    def effects(self, call: str) -> int:
        """How often it happened."""
        return self._number("SELECT count(*) FROM effects WHERE call = ?", call)

    def distinct(self, call: str) -> int:
        """How often it happened to someone who takes an idempotency key for once."""
        return self._number("SELECT count(DISTINCT ikey) FROM effects WHERE call = ?", call)

    def doubled(self) -> list[Doubled]:
        query = "SELECT call, tool, count(*) FROM effects GROUP BY call HAVING count(*) > 1"
        with closing(self._open()) as database:
            return [Doubled(*row) for row in database.execute(query)]

    def _number(self, query: str, *values: str) -> int:
        with closing(self._open()) as database:
            return int(database.execute(query, values).fetchone()[0])

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with closing(self._open()) as database, database:
            yield database

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.path, timeout=60)
        database.execute("PRAGMA synchronous=OFF")
        return database
