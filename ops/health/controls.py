"""What people and the code say about which calls may run now, with its use: read for every view that shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ...store.model.controls import EVERY_TENANT, ControlKind, Controls, Setting
from ...store.model.rates import Rate
from ...store.operations.controls import Use, controls, limits_waited_for, name_of, paused_calls, uses
from ..views.render import age, show_table

if TYPE_CHECKING:
    from ...store.connections.connection import Connection

LIMITING = tuple(kind for kind in ControlKind if kind is not ControlKind.PAUSE)
"""All but pauses, which have a view of their own."""
COLUMNS = ("setting", "target", "in force", "running", "waiting", "set by people", "in the code")


@dataclass(frozen=True, slots=True)
class ControlRow:
    """One target of one kind of setting.

    Attributes:
        in_force: what counts: people's word, else the code's; None where a limit of each tenant has been cleared.
        use: running calls that count under a limit, and calls that wait for this setting; None for ``tenant:*``.
    """

    kind: ControlKind
    target: str
    in_force: str | None
    people: Setting | None
    code: str | None
    use: Use | None

    @property
    def waited_for_as(self) -> str:
        """The name under which calls wait for it."""
        return name_of(self.kind, self.target)

    @property
    def said_by_people(self) -> str:
        """Who has set it, and why; "" where nobody has."""
        return self.people.by + (f": {self.people.reason}" if self.people.reason else "") if self.people else ""

    def told(self, now: int) -> str:
        """What counts and whose word it is, in one line."""
        if self.people is None:
            return f"{self.kind} {self.shown(self.in_force) or 'none'}, by the code"
        code = f"; the code says {self.shown(self.code)}" if self.code else ""
        set_at = f"{age(now - self.people.at)} ago"
        return f"{self.kind} {self.shown(self.people.value)}, set {set_at} by {self.said_by_people}{code}"

    def shown(self, value: str | None) -> str | None:
        """A value as people write it."""
        return str(Rate.from_stored(value)) if value is not None and self.kind is ControlKind.RATE else value


def read_controls(connection: Connection, kinds: Iterable[ControlKind] = LIMITING) -> tuple[ControlRow, ...]:
    """All settings of these kinds, and the limits that calls wait for: those of single tenants, too, which have theirs
    from ``tenant:*``."""
    said = connection.run(controls(connection.space))
    waited_for = connection.run(limits_waited_for(connection.space))
    rows = [(kind, target) for kind in kinds for target in _targets(said, kind, waited_for)]
    used = _uses(connection, [row for row in rows if row[1] != EVERY_TENANT])
    return tuple(
        ControlRow(
            kind,
            target,
            said.in_force(kind, target),
            said.people.get((kind, target)),
            said.code.get((kind, target)),
            used.get(name_of(kind, target)),
        )
        for kind, target in rows
    )


def _uses(connection: Connection, rows: Sequence[tuple[ControlKind, str]]) -> dict[str, Use]:
    """The calls under each setting, by its name: of a queue limit all that wait."""
    names = [name_of(kind, target) for kind, target in rows if kind is not ControlKind.QUEUE_LIMIT]
    used = connection.run(uses(connection.space, names)) if names else {}
    queued = [target for kind, target in rows if kind is ControlKind.QUEUE_LIMIT]
    counted = connection.run(paused_calls(connection.space, queued)) if queued else {}
    return used | {name_of(ControlKind.QUEUE_LIMIT, one): Use(0, calls.queued) for one, calls in counted.items()}


def _targets(said: Controls, kind: ControlKind, waited_for: Iterable[str]) -> list[str]:
    known = set(said.targets(kind))
    if kind is ControlKind.LIMIT:
        known |= {name for name in waited_for if name.startswith(("tool:", "tenant:"))}
    return sorted(known)


def as_json(row: ControlRow) -> dict[str, Any]:
    """A row as JSON; `at` is ms of Redis time."""
    people = {**asdict(row.people), "value": _typed(row, row.people.value)} if row.people else None
    if people:
        del people["since"]  # of pauses, which have a view of their own
    use = row.use or Use(0, 0)
    return {
        "kind": row.kind,
        "target": row.target,
        "in_force": _typed(row, row.in_force),
        "people": people,
        "code": _typed(row, row.code),
        "running": use.running if row.kind is ControlKind.LIMIT else None,
        "waiting": use.waiting,
    }


def _typed(row: ControlRow, value: str | None) -> Any:
    is_number = row.kind in (ControlKind.LIMIT, ControlKind.QUEUE_LIMIT)
    return int(value) if value is not None and is_number else row.shown(value)


def show(rows: Sequence[ControlRow], now: int) -> None:
    """Print the rows below another table; nothing where there are none."""
    if rows:
        print()
        show_table(COLUMNS, (cells(row, now) for row in rows))


def cells(row: ControlRow, now: int) -> tuple[object, ...]:
    """A row of the table with `COLUMNS`; `now` is ms of Redis time."""
    people = (
        f"{row.shown(row.people.value)}, {age(now - row.people.at)} ago by {row.said_by_people}" if row.people else ""
    )
    running: object = row.use.running if row.use and row.kind is ControlKind.LIMIT else ""
    waiting: object = row.use.waiting if row.use else ""
    return row.kind, row.target, row.shown(row.in_force), running, waiting, people, row.shown(row.code)
