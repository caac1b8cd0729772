"""`toolonce calls`: lists calls, a page at a time."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ....store.model.controls import parked_by
from ....store.model.record import PAGE_FIELDS
from ....store.operations.queries import FIND_MOST
from ...options.listing import Listing, add_filters, listing, page_size, server_now, wanted
from ...options.lookup import KEY_DIGITS
from ...options.parser import add_json, command
from ...options.settings import open_store
from ...views import render
from ...views.call_view import external
from ...views.render import SHOWN_DIGITS

if TYPE_CHECKING:
    from ....store.operations.queries import PageRow
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce calls                                    the newest calls in any state
toolonce calls --state unknown                    each needs a person, or the `reconcile` of its tool
toolonce calls --state failed --tool pay --since 1h --json
toolonce calls --error timeout --worker host-7    calls that failed there with this text in the error
toolonce calls --paused                           calls that wait since people have paused their tool, tenant or queue
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(subparsers, "calls", "List calls by state, newest first", examples=EXAMPLES)
    add_filters(parser)
    parser.add_argument("--oldest", action="store_true", help="oldest first")
    parser.add_argument("--limit", type=page_size, default=50, metavar="N", help="calls per page (50)")
    parser.add_argument("--cursor", help="continue after a page")
    add_json(parser, "{calls: [{call, state, entered_at, name, scope, turn, error, paused_by, ...}], looked_at, next}")


def run(args: argparse.Namespace) -> int:
    with open_store(args) as connection:
        wish = replace(wanted(args, connection), newest_first=not args.oldest, cursor=args.cursor)
        found = listing(connection, wish, limit=args.limit)
        now = server_now(connection)
    if args.json:
        rows = [{**row_json(row), "paused_by": found.paused_by(row)} for row in found.rows]
        render.show_json({"calls": rows, "looked_at": found.looked_at, "next": found.next})
    else:
        # Calls that a search by first digits does not find need the whole key.
        far = bool(args.cursor or args.older_than) or found.looked_at > FIND_MOST
        _show(found, now, connection.place, digits=KEY_DIGITS if far else SHOWN_DIGITS)
    return 0


def row_json(row: PageRow) -> dict[str, Any]:
    """A row as JSON; times are ms of Redis time."""
    fields = row.fields.typed(PAGE_FIELDS)
    if row.waits_for:
        fields["waits_for"], fields["waits_for_state"] = row.waits_for
    error = json.loads(fields.pop("error", "") or "null")
    return {"call": row.key, "state": row.state, "entered_at": row.entered_at, **external(fields), "error": error}


def _show(found: Listing, now: int, place: str, *, digits: int) -> None:
    if not found.rows:
        render.say(
            f"no such calls in {place}" if found.next is None else f"none among {found.looked_at} calls in {place}"
        )
    else:
        columns = ("call", "state", "for", "tool", "scope", "attempt", "details")
        render.show_table(columns, (_cells(row, now, found.paused_by(row), digits=digits) for row in found.rows))
        render.say(f"details of one: toolonce call {found.rows[0].key[:digits]}")
    if found.next:
        render.say(f"there may be more calls: --cursor {found.next}")


def _cells(row: PageRow, now: int, paused_by: Sequence[str], *, digits: int) -> tuple[object, ...]:
    got = row.fields
    shown = row.key[:digits]
    since = render.age(now - row.entered_at)
    return shown, render.state(row.state), since, got.tool, got.scope, got.attempt, _known(row, paused_by)


def _known(row: PageRow, paused_by: Sequence[str]) -> str:
    error = json.loads(row.fields.error or "null")
    if row.state.is_settled or row.state == "unknown":
        return render.brief(f"{error['code']}: {error['message']}") if error else ""
    reason = f"paused: {', '.join(paused_by)}" if paused_by else row.fields.reason
    words = [reason, "stop requested" if row.fields.cancel_requested else ""]
    if row.fields.waits and not parked_by(row.fields.waits):
        words.append(f"limited by {row.fields.waits}")
    if row.waits_for:
        words.append(f"behind {row.waits_for[0][:SHOWN_DIGITS]} ({row.waits_for[1]})")
    return ", ".join(word for word in words if word)
