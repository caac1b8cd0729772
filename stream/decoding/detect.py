"""Detects the dialect of a recorded stream or response, for people and for hints. Calls never depend on it.

Decides by the first frame that only one dialect has. Must not decode the turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..dialects.table import TABLE, dialect_of
from ..turns.errors import UnknownDialect
from ..turns.turn import DIALECTS, Dialect
from ..wire.frames import BadFrame, is_json, parse_frame
from ..wire.framing import BOM, Framing, WireEvent
from ..wire.limits import DEFAULT_LIMITS, LimitPassed, TurnLimits
from ..wire.sse import repaired

# Frames that are tried: the first one is distinctive, unless some pings come before it.
LOOK_AT = 64


def detect_dialect(data: bytes) -> Dialect:
    """The dialect of a stream or of a whole response.

    Raises:
        UnknownDialect: no frame in it belongs to one dialect only.
    """
    for name, frame in _frames(data):
        if (dialect := dialect_of(name, frame)) is not None:
            return dialect
    raise UnknownDialect(f"no dialect could be detected; name one of {', '.join(DIALECTS)}")


def is_document(data: bytes) -> bool:
    """Whether this is one JSON object (perhaps a broken one), and neither a stream of events nor an object a line."""
    text = data.lstrip(BOM + b" \t\r\n")
    first, _, rest = text.partition(b"\n")
    return text.startswith(b"{") and not (rest.strip() and is_json(repaired(first), DEFAULT_LIMITS))


def _frames(data: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    limits = TurnLimits()
    if is_document(data):
        events = [(b"", data.removeprefix(BOM), False)]
    else:
        framings = dict.fromkeys(row.framing for row in TABLE.values())
        events = [event for framing in framings for event in _events(framing(limits), data)]
    for name, text, _ in events:
        try:
            frame = parse_frame(text, limits)
        except (BadFrame, UnicodeDecodeError):
            continue
        if isinstance(frame, dict):
            yield name.decode(), frame


def _events(framing: Framing, data: bytes) -> list[WireEvent]:
    events = []
    try:
        for event in framing.feed(data):
            events.append(event)
            if len(events) == LOOK_AT:
                return events
        events += framing.end()
    except LimitPassed:
        pass
    return events
