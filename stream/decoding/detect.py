"""Which dialect some bytes look like, for a person who has a stream and no label, or the wrong one. Never used on the
way to a call.

Decides by the first frame that only one dialect has. Must not judge the turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..turns.errors import UnknownDialect
from ..turns.turn import DIALECTS, Dialect
from ..wire.frames import BadFrame, parse_frame
from ..wire.limits import LimitPassed, Limits
from ..wire.sse import SseReader

# A stream shows what it is with its first frame, or with the first after some pings.
LOOK_AT = 64
_ANTHROPIC = ("message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta")


def guess_dialect(data: bytes) -> Dialect:
    """The dialect of a stream or of a whole response.

    Raises:
        UnknownDialect: nothing in it belongs to one dialect alone.
    """
    for name, frame in _frames(data):
        if (dialect := dialect_of(name, frame)) is not None:
            return dialect
    raise UnknownDialect(f"no dialect recognised; name one of {', '.join(DIALECTS)}")


def _frames(data: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    limits = Limits()
    if data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        events = [(b"", data.removeprefix(b"\xef\xbb\xbf"), False)]
    else:
        events = _events(data, limits)
    for name, text, _ in events:
        try:
            frame = parse_frame(text, limits)
        except (BadFrame, UnicodeDecodeError):
            continue
        if isinstance(frame, dict):
            yield name.decode(), frame


def _events(data: bytes, limits: Limits) -> list[tuple[bytes, bytes, bool]]:
    reader = SseReader(limits)
    events = []
    try:
        for event in reader.feed(data):
            events.append(event)
            if len(events) == LOOK_AT:
                return events
        events += reader.end()
    except LimitPassed:
        pass
    return events


def dialect_of(name: str, frame: dict[str, Any]) -> Dialect | None:
    """The one dialect that this frame, or whole document, belongs to; None where it could be several's or nobody's."""
    kind = str(frame.get("type") or frame.get("event_type") or name)
    told = str(frame.get("object") or "")
    if kind.startswith("response.") or told == "response":
        return "openai-responses"
    if kind in _ANTHROPIC or (kind == "message" and "content" in frame):
        return "anthropic"
    if kind.startswith(("interaction.", "step.")) or told == "interaction" or "steps" in frame:
        return "google-interactions"
    if "choices" in frame or told.startswith("chat.completion"):
        return "openai-chat"
    if frame.keys() & {"candidates", "promptFeedback", "usageMetadata"}:
        return "google-generate"
    return None
