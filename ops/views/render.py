"""Prints tables for people and JSON for programs. Data goes to stdout, everything else to stderr.

Decides form only. Must not know any command.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...store.model.plain import UNSEEN, visible

SHOWN_DIGITS = 12
"""Digits of a call key in tables; enough to distinguish a billion calls."""
COLOURS = {
    "held": "yellow",
    "queued": "cyan",
    "running": "blue",
    "unknown": "bold magenta",
    "succeeded": "green",
    "failed": "red",
    "refused": "red",
    "cancelled": "yellow",
    "expired": "yellow",
    "conflict": "bold red",
}
PIPE_WIDTH = 200
"""Width of tables without a terminal; wide enough that grep finds whole lines."""

LONGEST_CELL = 200


def console(*, stderr: bool = False) -> Console:
    """A console for the current stdout or stderr; plain text where it is not a terminal."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else PIPE_WIDTH, highlight=False, soft_wrap=False)


def json_text(value: Any, *, indent: int | None = None) -> str:
    """A value as JSON. Text of any language stays readable; control characters are escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    # Outside of strings JSON has no control characters but line ends.
    return UNSEEN.sub(lambda mark: mark[0] if mark[0] == "\n" else json.dumps(mark[0])[1:-1], text)


def say(line: str) -> None:
    """Print one line for people to stderr."""
    print(visible(line), file=sys.stderr, flush=True)


def show(line: str) -> None:
    """Print one line of data to stdout."""
    print(visible(line), flush=True)


def show_json(value: Any) -> None:
    """Print one indented JSON document."""
    print(json_text(value, indent=2))


def json_line(value: Any) -> str:
    """A value as JSON on one line."""
    return json_text(value)


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """Print a table. Every cell is one line of plain text without markup, unless it is a Text."""
    grid = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        grid.add_column(column, overflow="fold")
    for row in rows:
        grid.add_row(*(cell if isinstance(cell, Text) else one_line(cell) for cell in row))
    console().print(grid)


def show_pairs(pairs: Mapping[str, object]) -> None:
    """Print names and values, one pair per line."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, value in pairs.items():
        grid.add_row(name, value if isinstance(value, Text) else plain(value))
    console().print(grid)


def one_line(value: object) -> Text:
    # A name that a model invented must not look like another row, nor hide the other columns.
    words = plain(value).plain
    return Text(words if len(words) <= LONGEST_CELL else f"{words[: LONGEST_CELL - 1]}…")


def plain(value: object) -> Text:
    """Text of any length, on one line."""
    return Text(visible("" if value is None else str(value)))


def state(word: str) -> Text:
    """A state with its colour."""
    return Text(visible(word), COLOURS.get(word, ""))


def age(milliseconds: int) -> str:
    """A time span for people, in one unit: 4s, 3m, 2h, 5d."""
    seconds = max(0, milliseconds) // 1000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def moment(milliseconds: int) -> str:
    """A time in UTC, to the millisecond."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def brief(words: str, most: int = 60) -> str:
    """The first line of a text, cut at `most` characters."""
    line = words.splitlines()[0] if words else ""
    return line if len(line) <= most else f"{line[: most - 1]}…"
