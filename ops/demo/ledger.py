"""The ledger in which the demo's tools record their effects: a file outside Redis, independent of the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

_TABLE = "CREATE TABLE IF NOT EXISTS effects (idempotency_key TEXT, tool TEXT, detail TEXT)"


class Ledger:
    """One line for each effect. Safe for many threads and processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as database:
            database.execute(_TABLE)

    def enter(self, idempotency_key: str, tool: str, detail: str) -> None:
        """The effect: durable when this returns."""
        with self._open() as database:
            database.execute("INSERT INTO effects VALUES (?, ?, ?)", (idempotency_key, tool, detail))

    def enter_once(self, idempotency_key: str, tool: str, detail: str) -> None:
        """What an idempotent system does: the same key again is no second effect."""
        with self._open() as database:
            database.execute("DELETE FROM effects WHERE idempotency_key = ?", (idempotency_key,))
            database.execute("INSERT INTO effects VALUES (?, ?, ?)", (idempotency_key, tool, detail))

    def count(self, idempotency_key: str | None = None) -> int:
        """How many effects there are, of one call or of all."""
        with self._open() as database:
            (number,) = database.execute(
                "SELECT count(*) FROM effects WHERE ?1 IS NULL OR idempotency_key = ?1", (idempotency_key,)
            ).fetchone()
        return int(number)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=30)) as database, database:
            yield database
