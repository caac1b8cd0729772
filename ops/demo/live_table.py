"""The demo's live table: one line for each call, from the first fragment to the outcome.

On a terminal the table changes in place; elsewhere each change is a line of plain text. Decides looks only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from rich.live import Live
from rich.table import Table

from ..views import render


@dataclass(frozen=True, slots=True)
class Line:
    """What is shown of one call."""

    stream: str
    tool: str
    arguments: str = ""
    state: str = "drafting"
    answer: str = ""


class LiveTable:
    """Lines by name, shown as they change. A context manager: it draws only inside."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._lines: dict[object, Line] = {}
        self._console = render.console()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(self._table(), console=self._console, refresh_per_second=20)
            self._live.start()
        else:
            print(f"== {self._title}", flush=True)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live:
            self._live.update(self._table(), refresh=True)
            self._live.stop()

    def open(self, name: object, stream: str, tool: str) -> None:
        """A new line, or the tool's name again, longer."""
        self._set(name, replace(self._lines.get(name, Line(stream, tool)), tool=tool), loud=False)

    def draft(self, name: object, arguments: str) -> None:
        """More of the arguments; no fact yet."""
        self._set(name, replace(self._lines[name], arguments=arguments), loud=False)

    def state(self, name: object, word: str, answer: str = "") -> None:
        """Where the call stands now."""
        line = replace(self._lines[name], state=word, answer=answer or self._lines[name].answer)
        self._set(name, line, loud=line != self._lines[name])

    def _set(self, name: object, line: Line, *, loud: bool) -> None:
        self._lines[name] = line
        if self._live:
            self._live.update(self._table())
        elif loud:
            words = (line.stream, line.tool, line.state, line.answer or render.brief(line.arguments, 90))
            print("   " + "  ".join(str(render.plain(word)) for word in words if word), flush=True)

    def _table(self) -> Table:
        grid = Table(title=self._title, title_justify="left", title_style="bold", box=None, expand=True)
        for column, width in (("stream", 15), ("tool", 14), ("state", 9)):
            grid.add_column(column, no_wrap=True, width=width)
        grid.add_column("arguments, then the answer", no_wrap=True, ratio=1)
        for line in self._lines.values():
            last = render.brief(line.answer or line.arguments, 90)
            grid.add_row(
                render.plain(line.stream), render.plain(line.tool), render.state(line.state), render.plain(last)
            )
        return grid
