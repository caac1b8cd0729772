"""What every framing offers the decoder: bytes in, events out, whatever pieces the bytes come in.

A dialect's row names its framing. Must not know any dialect, or what is inside an event's data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

# Event name (empty where there is none), data, and whether some of its bytes were wrong (they stand in it as U+FFFD).
WireEvent = tuple[bytes, bytes, bool]


class Framing(Protocol):
    """One response's bytes, cut into events.

    Attributes:
        names_events: each event has its name outside of its data: that one alone counts, and events of unknown
            names are passed over, whatever they hold.
        bad_utf8: some text so far was not UTF-8.
        unreadable: why nothing more can be read (a wrong checksum or length); None as long as all can.
        stray: lines between the events that belong to none, up to ``TurnLimits.stray_bytes``; one may tell an error.
    """

    names_events: bool
    bad_utf8: bool
    unreadable: str | None
    stray: list[bytes]

    def feed(self, chunk: bytes) -> Iterable[WireEvent]:
        """The events that these bytes complete.

        Raises:
            LimitPassed: a line or an event is too long.
        """

    def end(self) -> Iterable[WireEvent]:
        """At a clean end: the last event where it lacks its own end. Whether it counts is for the caller to say.

        Raises:
            LimitPassed: as for `feed`.
        """

    def broken(self) -> None:
        """The transport broke: nothing more is dispatched, but `bad_utf8` and `stray` take the last bytes in."""
