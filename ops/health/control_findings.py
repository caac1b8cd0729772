"""What is to be known of the settings of people: they win over the code, silently, until someone clears them. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ...store.model.controls import ControlKind
from .findings import Finding, Severity
from .health_snapshot import HealthSnapshot


def of_the_controls(snapshot: HealthSnapshot) -> Iterator[Finding]:
    """One notice for each setting of people, and a warning where it is about a tool that nobody knows."""
    if snapshot.stats is None:
        return
    known = snapshot.specs.tools.keys() | snapshot.specs.unreadable
    for row in snapshot.controls:
        if row.people is None:
            continue
        sort, _, name = row.target.partition(":")
        is_pause = row.kind is ControlKind.PAUSE
        clear = f"toolonce resume {row.target}" if is_pause else f"toolonce {row.kind} {row.target} --clear"
        if sort == "tool" and name not in known:
            yield Finding(
                "set_for_no_tool", Severity.WARNING,
                f"{row.target}, which no worker has published, has a {row.told(snapshot.stats.read_at)}",
                "a name that was typed wrong holds nobody back", clear,
            )  # fmt: skip
            continue
        waiting = f"; {row.use.waiting} calls wait for it" if row.use and row.use.waiting else ""
        yield Finding(
            "set_by_people", Severity.NOTICE,
            f"{row.target}: {row.told(snapshot.stats.read_at)}{waiting}",
            "it wins over what the code says, also after the next deployment", clear,
        )  # fmt: skip
