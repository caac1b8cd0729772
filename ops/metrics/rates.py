"""Calls per second, from the last minute of the event stream."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...store.connections.connection import Connection
from ...store.model.states import State
from .events import read_entry

WINDOW_MS = 60_000
MOST = 2_000
"""Most entries read. On a busy store they cover less than the window, and the rate is of that shorter time."""


def rates(connection: Connection, now: int) -> dict[str, float]:
    """Calls per second that were admitted, claimed and settled, and the measured time in seconds."""
    words = ("XREVRANGE", connection.space.events, "+", now - WINDOW_MS, "COUNT", MOST)
    entries = connection.command(*words)
    seconds = WINDOW_MS / 1000
    if len(entries) == MOST:
        seconds = max(0.001, (now - int(entries[-1][0].split(b"-")[0])) / 1000)
    counted = Counter(_kind(event.facts) for entry in entries for event in read_entry(entry))
    return {
        "admitted": round(counted["admitted"] / seconds, 3),
        "claimed": round(counted["claimed"] / seconds, 3),
        "settled": round(counted["settled"] / seconds, 3),
        "over_s": round(seconds, 3),
    }


def _kind(facts: dict[str, Any]) -> str:
    target = facts.get("to")
    if facts.get("op") == "admit":
        return "admitted"
    if target == State.RUNNING:
        return "claimed"
    return "settled" if target and State(target).is_settled else ""
