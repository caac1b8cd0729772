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
    return [event for entry in reversed(entries) for event in read_entry(entry)][-max(1, most) :]


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
                yield from read_entry(entry)
    finally:
        link.close()


def read_entry(entry: list[Any]) -> list[Event]:
    """The events of a stream entry: those of one script, call and event in turns. What cannot be read has the op
    `unreadable`."""
    place, fields = entry
    return [_event(place, fields[at : at + 4]) for at in range(0, len(fields), 4)]


def _event(place: bytes, fields: list[bytes]) -> Event:
    try:
        named_call, call, named_event, line = fields
        if (named_call, named_event) != (b"call", b"event"):
            raise ValueError("fields of another kind")
        facts = json.loads(line)
        return Event(place, call.decode(), {**facts, "at": int(facts["at"])})
    except (ValueError, KeyError, TypeError, RecursionError):
        return Event(place, "", {"at": int(place.partition(b"-")[0]), "op": "unreadable"})
