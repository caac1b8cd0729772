"""What people and the tools' code say about which calls may run now: limits, rates, pauses; and how it is stored.

Pure. One hash holds all of it, one field per setting. What people say is ``<kind> <target>`` and wins, in both
directions and over every deployment, until it is cleared; what the code says is ``code <kind> <target>``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class ControlKind(StrEnum):
    """What a setting is about."""

    LIMIT = "limit"
    """Most calls at once over all workers."""
    QUEUE_LIMIT = "queue-limit"
    """Most calls that wait, before new ones are refused."""
    RATE = "rate"
    """How many calls may start in a time, over all workers."""
    PAUSE = "pause"
    """None of its calls begins; what runs goes on."""


_TARGETS = {
    ControlKind.LIMIT: ("tool", "tenant"),
    ControlKind.QUEUE_LIMIT: ("queue", "tenant"),
    ControlKind.RATE: ("tool",),
    ControlKind.PAUSE: ("tool", "queue", "tenant"),
}
EVERY_TENANT = "tenant:*"
"""Each tenant that has no limit of its own."""
PAUSE_PREFIX = "pause "
"""Of what a parked call waits for; a target follows."""
PAUSED, RESUMED = "on", "off"
"""The values of a pause: it lasts; it is over, and kept, since deadlines are prolonged by it."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a person has set.

    Attributes:
        at: when, ms of Redis time.
        since: of a pause, since when it lasts; earlier than `at` where a second person has paused what was paused.
    """

    value: str
    by: str
    at: int
    reason: str = ""
    since: int | None = None


@dataclass(frozen=True, slots=True)
class Controls:
    """All settings by kind and target, of people and of the code."""

    people: Mapping[tuple[ControlKind, str], Setting] = field(default_factory=dict)
    code: Mapping[tuple[ControlKind, str], str] = field(default_factory=dict)

    @classmethod
    def from_stored(cls, fields: Mapping[str, str]) -> Controls:
        """Read the hash, without pauses that are over and fields of kinds that this release does not know."""
        people: dict[tuple[ControlKind, str], Setting] = {}
        code: dict[tuple[ControlKind, str], str] = {}
        for name, stored in fields.items():
            is_code = name.startswith("code ")
            kind, _, target = name.removeprefix("code ").partition(" ")
            if kind not in list(ControlKind):
                continue
            if is_code:
                code[ControlKind(kind), target] = stored
            elif not stored.startswith(f"{RESUMED} "):
                people[ControlKind(kind), target] = read_setting(stored)
        return cls(people, code)

    def targets(self, kind: ControlKind) -> tuple[str, ...]:
        """What has a setting of this kind, sorted."""
        return tuple(sorted({target for known, target in (*self.people, *self.code) if known is kind}))

    def in_force(self, kind: ControlKind, target: str) -> str | None:
        """What counts for this target: the word of people, else that of the code; None where neither says anything."""
        if said := self.people.get((kind, target)):
            return said.value
        every = self.people.get((kind, EVERY_TENANT)) if target.startswith("tenant:") else None
        return every.value if every else self.code.get((kind, target))

    def pauses_of(self, tool: str, tenant: str, queue: str) -> dict[str, Setting]:
        """The pauses in force that keep such a call from running, by target."""
        targets = (f"tool:{tool}", f"tenant:{tenant}", f"queue:{queue}")
        return {one: self.people[ControlKind.PAUSE, one] for one in targets if (ControlKind.PAUSE, one) in self.people}


def parked_by(waits: str) -> str:
    """The target of the pause that a call is parked by, from what its record says that it waits for; "" for none."""
    return waits.removeprefix(PAUSE_PREFIX) if waits.startswith(PAUSE_PREFIX) else ""


def read_setting(stored: str) -> Setting:
    """A stored setting: the value, a space, and who has set it, when and why, as JSON."""
    value, _, about = stored.partition(" ")
    said = json.loads(about)
    since = said.get("since")
    return Setting(value, said["by"], int(said["at"]), said["reason"], None if since is None else int(since))


def check_target(kind: ControlKind, target: str) -> str:
    """The target, if a setting of this kind can be about it.

    Raises:
        ValueError: it cannot; the text says what can.
    """
    sort, _, name = target.partition(":")
    has_default = kind in (ControlKind.LIMIT, ControlKind.QUEUE_LIMIT)
    if sort not in _TARGETS[kind] or not name or (name == "*" and not (has_default and target == EVERY_TENANT)):
        known = ", ".join(f"{sort}:NAME" for sort in _TARGETS[kind])
        every = f", or {EVERY_TENANT} for each tenant without one of its own" if has_default else ""
        raise ValueError(f"{target!r}: a {kind} is for {known}{every}")
    return target
