"""Reads the event stream, which has one event for each change of a call. Must not know what events mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...store.connections.connection import Connection

BLOCK_MS = 500
STEP = 500


@dataclass(frozen=True, slots=True)
class Event:
    """One change of a call. `facts` holds at (ms), op, tool, from, to, actor, fence, attempt, reason where known.

    It also holds counted_as, the tool name for metrics, where a model invented the tool."""

    place: bytes
    call: str
    facts: dict[str, Any]


def recent(connection: Connection, most: int) -> list[Event]:
    """The last events, oldest first."""
    entries = connection.command("XREVRANGE", connection.space.events, "+", "-", "COUNT", max(1, most))
    return [read_entry(entry) for entry in reversed(entries)]


def follow(connection: Connection, after: bytes, goes_on: Callable[[], bool]) -> Iterator[Event]:
    """Yield events after a stream id as they come, while `goes_on` returns True; it is called twice a second.

    Raises:
        StoreUnavailable: the server does not answer.
    """
    link = connection.dedicated()
    try:
        while goes_on():
            words = ("XREAD", "COUNT", STEP, "BLOCK", BLOCK_MS, "STREAMS", connection.space.events, after)
            reply = link.command(*words)
            for entry in reply[0][1] if reply else ():
                after = entry[0]
                yield read_entry(entry)
    finally:
        link.close()


def read_entry(entry: list[Any]) -> Event:
    """A stream entry as an event. An entry that cannot be read has the op `unreadable`."""
    try:
        fields = dict(zip(entry[1][::2], entry[1][1::2], strict=True))
        facts = json.loads(fields[b"event"])
        return Event(entry[0], fields[b"call"].decode(), {**facts, "at": int(facts["at"])})
    except (ValueError, KeyError, TypeError, RecursionError):
        return Event(entry[0], "", {"at": int(entry[0].partition(b"-")[0]), "op": "unreadable"})
