"""`toolonce aborted`: lists attempts at a provider that gave no turn, which are billed although nothing ran.

Harnesses store these notes: see `Observers.on_aborted`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ....store.operations.aborted_turns import MOST, aborted
from ...options.parser import add_json, command
from ...options.settings import open_store
from ...views import render

if TYPE_CHECKING:
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce aborted
toolonce aborted --json | jq '[.aborted[].tokens_seen // 0] | add'
"""
ROWS = 100


def add_parser(subparsers: Subparsers) -> None:
    summary = f"Show provider turns that were lost and billed: the newest {ROWS}, with --json all of them"
    add_json(command(subparsers, "aborted", summary, examples=EXAMPLES), "{aborted: [{at, dialect, reason, ...}]}")


def run(args: argparse.Namespace) -> int:
    with open_store(args) as connection:
        notes = connection.run(aborted(connection.space, most=MOST if args.json else ROWS))
    if args.json:
        render.show_json({"aborted": list(notes)})
    elif not notes:
        render.say(f"there are no notes of lost turns in {connection.place}")
    else:
        render.show_table(
            ("when", "dialect", "scope", "attempt", "reason", "status", "bytes", "tokens", "took"), map(_cells, notes)
        )
    return 0


def _cells(note: Mapping[str, Any]) -> tuple[object, ...]:
    got = note.get
    took = render.age(round(1000 * got("seconds", 0)))
    return (
        render.moment(note["at"]), got("dialect"), got("scope"), got("attempt"), got("reason"), got("status") or "none",
        got("bytes_seen"), got("tokens_seen"), took,
    )  # fmt: skip
