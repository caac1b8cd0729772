"""What is to be known of the settings of people: they win over the code, silently, until someone clears them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ...store.model.controls import ControlKind
from ...store.operations.recovery import DAY_MS
from .findings import Finding, Severity
from .health_snapshot import HealthSnapshot

PAUSED_LONG_MS = DAY_MS
"""A pause that lasts longer was perhaps forgotten."""


def of_the_pauses(snapshot: HealthSnapshot) -> Iterator[Finding]:
    """One finding for each pause: a notice, and a warning where it has lasted for long or is about no known tool."""
    if snapshot.stats is None:
        return
    now = snapshot.stats.read_at
    known = {f"tool:{name}" for name in (*snapshot.specs.tools, *snapshot.specs.unreadable)}
    for row in snapshot.pauses:
        if row.setting is None:
            continue
        resume = f"toolonce resume {row.target}"
        if row.target.startswith("tool:") and row.target not in known:
            yield Finding(
                "paused_no_tool", Severity.WARNING,
                f"{row.target}, which no worker has published, is {row.told(now)}",
                "a name that was typed wrong stops nothing", resume,
            )  # fmt: skip
            continue
        is_long = now - (row.setting.since or row.setting.at) > PAUSED_LONG_MS
        yield Finding(
            "paused", Severity.WARNING if is_long else Severity.NOTICE,
            f"{row.target} is {row.told(now)}; {row.calls.queued} calls wait",
            "none of its calls begins, and none expires, until it is resumed", resume,
        )  # fmt: skip


def of_the_controls(snapshot: HealthSnapshot) -> Iterator[Finding]:
    """One notice for each setting of people, and a warning where it is about a tool that nobody knows."""
    if snapshot.stats is None:
        return
    known = snapshot.specs.tools.keys() | snapshot.specs.unreadable
    for row in snapshot.controls:
        if row.people is None:
            continue
        sort, _, name = row.target.partition(":")
        is_of_queue = row.kind is ControlKind.QUEUE_LIMIT
        clear = f"toolonce {'limit --queued' if is_of_queue else row.kind} {quote(row.target)} --clear"
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
