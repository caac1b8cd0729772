"""Lists calls by state and time with filters, in small steps: a page never reads the whole store.

Decides order, cursors and where a search stops. Reads only. Must not know how rows are shown.
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...store.connections.connection import Connection
from ...store.model.controls import Controls
from ...store.model.states import State
from ...store.operations.controls import controls
from ...store.operations.queries import PageRow, Span, page
from ..errors import Usage
from .durations import milliseconds, milliseconds_or_none
from .parser import filled

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from argparse import _ArgumentGroup as ArgumentGroup

STEP = 100
"""Rows of one read; takes a few ms of Redis time."""
LOOK_AT = 500
"""Rows of one state that a summary reads, oldest first."""
LOOK_MOST = 1_000
"""Most rows read for one page where few match; the cursor continues from there."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Filters for calls; None or "" for any. `error`: text in the stored error; `scope`: may end with ``*``;
    `paused`: what people have paused, where only calls that wait for that are wanted."""

    states: tuple[State, ...] = tuple(State)
    tool: str | None = None
    scope: str | None = None
    worker: str | None = None
    error: str | None = None
    since_us: int | None = None
    before_us: int | None = None
    newest_first: bool = True
    cursor: str | None = None
    step: int = STEP
    paused: Controls | None = None

    def fits(self, row: PageRow) -> bool:
        """Whether the row passes the filters that have no index."""
        got = row.fields
        return (
            (not self.tool or got.tool == self.tool)
            and _fits_scope(self.scope, got.scope)
            and (not self.worker or self.worker in got.worker)
            and (not self.error or self.error.casefold() in got.error.casefold())
            and (self.paused is None or bool(paused_by(self.paused, row)))
        )


@dataclass(slots=True)
class Listing:
    """The rows of a page; `next` is the cursor of the next page, None at the end."""

    rows: list[PageRow] = field(default_factory=list)
    looked_at: int = 0
    next: str | None = None
    controls: Controls = field(default_factory=Controls)

    def paused_by(self, row: PageRow) -> list[str]:
        """The targets whose pauses keep the call from running; [] for none."""
        return paused_by(self.controls, row)


def paused_by(said: Controls, row: PageRow) -> list[str]:
    """The targets whose pauses keep a queued call from running; [] for none."""
    got = row.fields
    return list(said.pauses_of(got.tool, got.tenant, got.queue)) if row.state is State.QUEUED else []


def add_filters(parser: ArgumentParser) -> ArgumentGroup:
    """Add the filters of listing and bulk commands; returns their group, for further options."""
    group = parser.add_argument_group("which calls")
    group.add_argument(
        "--state",
        action="append",
        choices=[state.value for state in State],
        help="calls in this state; may be repeated",
    )
    group.add_argument("--tool", metavar="T", type=filled, help="calls of this tool")
    group.add_argument("--scope", metavar="S", type=filled, help="calls of this scope; a trailing * matches any ending")
    group.add_argument(
        "--worker", metavar="W", type=filled, help="calls last claimed by a worker whose name contains this"
    )
    group.add_argument(
        "--paused", action="store_true", help="queued calls whose tool, tenant or queue people have paused"
    )
    group.add_argument("--error", metavar="TEXT", type=filled, help="calls whose error contains this text")
    group.add_argument(
        "--since",
        metavar="SPAN",
        type=milliseconds,
        help="calls that entered their state within this time: 90s, 1h, 7d",
    )
    group.add_argument(
        "--older-than",
        metavar="SPAN",
        type=milliseconds_or_none,
        help="calls that entered their state longer ago than this",
    )
    return group


def wanted(args: Namespace, connection: Connection, default: tuple[State, ...] = tuple(State)) -> Wanted:
    """The filters of the command line; time spans count back from Redis time."""
    now = server_now(connection)
    states = tuple(State(word) for word in args.state) if args.state else default
    if args.paused:
        states = tuple(state for state in states if state is State.QUEUED)
    return Wanted(
        states=states,
        paused=connection.run(controls(connection.space)) if args.paused else None,
        tool=args.tool,
        scope=args.scope,
        worker=args.worker,
        error=args.error,
        since_us=None if args.since is None else (now - args.since) * 1000,
        before_us=None if args.older_than is None else (now - args.older_than) * 1000,
    )


def oldest(connection: Connection, state: State) -> tuple[PageRow, ...]:
    """The oldest `LOOK_AT` calls of a state, the oldest first."""
    return connection.run(page(connection.space, state, Span(newest_first=False, most=LOOK_AT))).rows


def behind_doubt(held: Sequence[PageRow]) -> list[PageRow]:
    """The held calls among these that wait for an unknown call."""
    return [row for row in held if row.waits_for and row.waits_for[1] == State.UNKNOWN]


def server_now(connection: Connection) -> int:
    """Redis time in ms, the only clock that is used."""
    seconds, micros = connection.command("TIME")
    return int(seconds) * 1000 + int(micros) // 1000


def listing(connection: Connection, wish: Wanted, *, limit: int) -> Listing:
    """One page of at most `limit` calls, from the cursor on."""
    found = Listing(controls=connection.run(controls(connection.space)) if wish.paused is None else wish.paused)
    if not (wish.tool or wish.scope or wish.worker or wish.error or wish.paused):
        wish = replace(wish, step=min(STEP, limit + 1))  # without filters no more rows are read than shown
    for row in _merged(connection, wish):
        if len(found.rows) == limit or found.looked_at == LOOK_MOST:
            return found
        found.looked_at += 1
        found.next = f"{row.entered_us}-{row.key}"
        if wish.fits(row):
            found.rows.append(row)
    found.next = None
    return found


def walk(connection: Connection, wish: Wanted) -> Iterator[PageRow]:
    """All matching calls, read in small steps."""
    return (row for row in _merged(connection, wish) if wish.fits(row))


def _merged(connection: Connection, wish: Wanted) -> Iterator[PageRow]:
    start = _read_cursor(wish.cursor)
    bound = _narrowed(wish, start)
    streams = [_in_state(connection, state, bound) for state in wish.states]
    for row in heapq.merge(*streams, key=_place, reverse=wish.newest_first):
        if start is None or (_place(row) < start if wish.newest_first else _place(row) > start):
            yield row


def _in_state(connection: Connection, state: State, wish: Wanted) -> Iterator[PageRow]:
    """Matching calls of one state. Each step starts at the time of the last row, after the rows already seen with that
    time, so that calls which enter or leave the state meanwhile shift nothing."""
    span = Span(wish.newest_first, wish.since_us, wish.before_us, most=wish.step)
    while True:
        rows = connection.run(page(connection.space, state, span)).rows
        yield from rows
        if len(rows) < wish.step:
            return
        edge = rows[-1].entered_us
        same = sum(row.entered_us == edge for row in rows)
        seen = same + span.offset if same == len(rows) else same
        if wish.newest_first:
            span = replace(span, offset=seen, before_us=edge)
        else:
            span = replace(span, offset=seen, after_us=edge)


def _narrowed(wish: Wanted, start: tuple[int, str] | None) -> Wanted:
    if start is None:
        return wish
    if wish.newest_first:
        return replace(wish, before_us=min(start[0], wish.before_us or start[0]))
    return replace(wish, since_us=max(start[0], wish.since_us or 0))


def _read_cursor(cursor: str | None) -> tuple[int, str] | None:
    if cursor is None:
        return None
    entered, dash, key = cursor.partition("-")
    if not dash or not entered.isdigit():
        raise Usage(f"--cursor {cursor!r}: use the cursor that the previous page printed")
    return int(entered), key


def _place(row: PageRow) -> tuple[int, str]:
    return row.entered_us, row.key


def _fits_scope(wish: str | None, scope: str) -> bool:
    if not wish:
        return True
    return scope.startswith(wish[:-1]) if wish.endswith("*") else scope == wish


def page_size(text: str) -> int:
    """A number of rows for a page. An argparse type."""
    if not text.isdigit() or not 1 <= int(text) <= LOOK_MOST:
        raise argparse.ArgumentTypeError(f"a page holds 1 to {LOOK_MOST} calls, not {text}")
    return int(text)
