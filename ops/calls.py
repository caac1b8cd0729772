"""`toolonce calls`: which calls there are, a page at a time."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from . import render
from .listing import Listing, add_filters, listing, page_size, server_now, wanted
from .lookup import SHOWN_DIGITS
from .settings import open_store
from .subcommand import add_json, command

if TYPE_CHECKING:
    from ..store.reading import Row
    from .subcommand import Subparsers

EXAMPLES = """
toolonce calls                                    the newest calls of all states
toolonce calls --state unknown                    the calls in doubt: each needs a person, or the tool's read-back
toolonce calls --state failed --tool pay --since 1h --json
toolonce calls --error timeout --worker host-7    failed there, with that word in the error
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(subparsers, "calls", "List calls by state, newest first", examples=EXAMPLES)
    add_filters(parser)
    parser.add_argument("--oldest", action="store_true", help="oldest first")
    parser.add_argument("--limit", type=page_size, default=50, metavar="N", help="calls on a page (50)")
    parser.add_argument("--cursor", help="go on where a page ended")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    with open_store(args) as connection:
        wish = replace(wanted(args, connection), newest_first=not args.oldest, cursor=args.cursor)
        found = listing(connection, wish, limit=args.limit)
        now = server_now(connection)
    if args.json:
        rows = [row_json(row) for row in found.rows]
        render.show_json({"calls": rows, "looked_at": found.looked_at, "next": found.next})
    else:
        _show(found, now)
    return 0


def row_json(row: Row) -> dict[str, Any]:
    """A row for programs; times are ms of Redis time."""
    fields: dict[str, Any] = dict(row.fields)
    for name in ("position", "attempt", "fence", "admitted_at", "not_before"):
        if name in fields:
            fields[name] = int(fields[name])
    error = json.loads(fields.pop("error", "") or "null")
    return {"key": row.key, "state": row.state, "entered_at": row.entered_at, **fields, "error": error}


def _show(found: Listing, now: int) -> None:
    if not found.rows:
        render.say("no such calls" if found.next is None else f"none among {found.looked_at} calls")
    else:
        columns = ("call", "state", "for", "tool", "scope", "attempt", "what is known")
        render.show_table(columns, (_cells(row, now) for row in found.rows))
        render.say(f"all about one: toolonce call {found.rows[0].key[:SHOWN_DIGITS]}")
    if found.next:
        render.say(f"there may be more: --cursor {found.next}")


def _cells(row: Row, now: int) -> tuple[object, ...]:
    got = row.fields.get
    shown = row.key[:SHOWN_DIGITS]
    since = render.age(now - row.entered_at)
    return shown, render.state(row.state), since, got("tool"), got("scope"), got("attempt"), _known(row)


def _known(row: Row) -> str:
    error = json.loads(row.fields.get("error") or "null")
    if row.state.is_settled or row.state == "unknown":
        return render.brief(f"{error['code']}: {error['message']}") if error else ""
    words = [row.fields.get("reason", ""), "stop asked for" if row.fields.get("cancel_requested") else ""]
    return ", ".join(word for word in words if word)
