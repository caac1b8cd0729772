"""The interface of a framing: it takes bytes, however they are chunked, and returns events.

The row of a dialect in the table names its framing. Must not know any dialect, or what is inside an event's data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

# Event name (empty where there is none), data, and whether some bytes were not UTF-8 (replaced by U+FFFD in the data).
WireEvent = tuple[bytes, bytes, bool]

# The byte order mark; one at the start of a response means nothing.
BOM = b"\xef\xbb\xbf"


class Framing(Protocol):
    """Splits the bytes of one response into events.

    Attributes:
        names_events: each event has its name outside of its data. Only that name counts, and events with an unknown
            name are skipped.
        bad_utf8: some text so far was not UTF-8.
        unreadable: why the bytes cannot be read any further (a wrong checksum or length); None where they can.
        ended: whether the end mark of the framing came; None where it has none and only the transport's end counts.
        stray: lines that belong to no event or are not JSON, up to ``TurnLimits.stray_bytes``; they may hold an error
            document.
    """

    names_events: bool

    @property
    def bad_utf8(self) -> bool: ...

    @property
    def unreadable(self) -> str | None: ...

    @property
    def ended(self) -> bool | None: ...

    @property
    def stray(self) -> list[bytes]: ...

    def feed(self, chunk: bytes) -> Iterable[WireEvent]:
        """The events that these bytes complete.

        Raises:
            LimitPassed: a line or an event is too long.
        """

    def end(self) -> Iterable[WireEvent]:
        """At a clean end: the last event if its own end is missing. The caller decides whether it counts.

        Raises:
            LimitPassed: as for `feed`.
        """

    def broken(self) -> None:
        """The transport broke: no further event, but the last bytes still count for `bad_utf8` and `stray`."""

    def refused(self, data: bytes) -> None:
        """The caller found that the data of the last event is not JSON: where events are plain lines, it is stray."""
