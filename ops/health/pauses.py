"""What people have paused, with the calls that wait for the end of it: read for every view that shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...store.model.controls import ControlKind, Setting, parked_by
from ...store.operations.controls import Paused, controls, limits_waited_for, paused_calls
from ..views.render import age, show_table

if TYPE_CHECKING:
    from ...store.connections.connection import Connection

COLUMNS = ("paused", "since", "by", "reason", "queued", "parked")


@dataclass(frozen=True, slots=True)
class PauseRow:
    """One pause.

    Attributes:
        setting: who has paused it, when and why; None where it is not paused. Parked calls still come back then.
    """

    target: str
    setting: Setting | None
    calls: Paused

    def told(self, now: int) -> str:
        """Since when and by whom, in one line."""
        return told(self.setting, now) if self.setting else "not paused"


def read_pauses(connection: Connection, targets: Iterable[str] = ()) -> tuple[PauseRow, ...]:
    """All pauses, and those that are over and whose calls still come back; or these targets, paused or not."""
    said = connection.run(controls(connection.space))
    coming_back = {parked_by(waits) for waits in connection.run(limits_waited_for(connection.space))} - {""}
    found = sorted({*said.targets(ControlKind.PAUSE), *coming_back})
    found = sorted(set(targets)) or found
    counted = connection.run(paused_calls(connection.space, found)) if found else {}
    return tuple(PauseRow(one, said.people.get((ControlKind.PAUSE, one)), counted[one]) for one in found)


def told(setting: Setting, now: int) -> str:
    """A pause in one line: since when it lasts, by whom and why. `now` is ms of Redis time."""
    reason = f": {setting.reason}" if setting.reason else ""
    return f"paused for {age(now - _since(setting))} by {setting.by}{reason}"


def _since(setting: Setting) -> int:
    return setting.at if setting.since is None else setting.since


def setting_json(target: str, setting: Setting) -> dict[str, Any]:
    """A pause in force as JSON; `since` and `at` are ms of Redis time."""
    who = {"by": setting.by, "at": setting.at, "reason": setting.reason}
    return {"target": target, "since": _since(setting), **who}


def as_json(row: PauseRow) -> dict[str, Any]:
    """A row as JSON: `queued` are the calls that the pause is about, `parked` those among them without a pointer."""
    if row.setting:
        who = {"paused": True, **setting_json(row.target, row.setting)}
    else:
        who = {"paused": False, "target": row.target, "since": None, "by": None, "at": None, "reason": None}
    return {**who, "queued": row.calls.queued, "parked": row.calls.parked}


def show(rows: Sequence[PauseRow], now: int) -> None:
    """Print the rows below another table; nothing where there are none."""
    if rows:
        print()
        show_table(COLUMNS, (cells(row, now) for row in rows))


def cells(row: PauseRow, now: int) -> tuple[object, ...]:
    """A row of the table with `COLUMNS`; `now` is ms of Redis time."""
    use = (row.calls.queued, row.calls.parked)
    if row.setting is None:
        return row.target, "not now", "", "parked calls come back" if row.calls.parked else "", *use
    return row.target, f"{age(now - _since(row.setting))} ago", row.setting.by, row.setting.reason, *use


def words(pauses: Mapping[str, Setting], now: int) -> str:
    """Several pauses of one call in one line."""
    return "; ".join(f"{target}, {told(setting, now)}" for target, setting in pauses.items())
