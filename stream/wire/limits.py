"""The limits of a decoder: how large one turn and its parts may be, with the reason for each number.

A turn that exceeds a limit is ``malformed`` (or one call of it ``too_large`` or ``too_deep``); it causes no MemoryError
and no RecursionError. Must not know how the parts are decoded.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """Limits of one turn, for ``TurnDecoder(dialect, limits=TurnLimits(calls=16))``.

    Attributes:
        line_bytes: bytes of one line. The last event of a Responses stream repeats the whole turn, JSON inside JSON,
            and can carry an image; hence four times the largest argument text.
        event_bytes: bytes of all data lines of one event.
        argument_chars: characters of the argument text of one call; a longer one is ``too_large``. No model writes more
            than a few MB.
        calls: calls of one turn. Providers accept at most 128 tools; a server that repeats itself exceeds this soon.
        nesting: levels of nested objects and lists, the outer object included; deeper is ``too_deep``. Every JSON
            parser that a tool may use supports this depth.
        held_values: values in the arguments of a call that the caller built (``ToolCall``). A value that occurs twice
            counts twice, since lists that contain each other have no end. More is ``too_large``.
        digits: digits of one integer; more is ``too_large``. Python has the same limit against quadratic conversion.
        total_bytes: bytes of the whole stream. Ten million fragments of one character each need about 1.3 GB.
        stray_bytes: bytes of lines that are not SSE, which are kept to find an error document among them.
    """

    line_bytes: int = 64 * MIB
    event_bytes: int = 64 * MIB
    argument_chars: int = 16 * MIB
    calls: int = 1024
    nesting: int = 100
    held_values: int = MIB
    digits: int = 4300
    total_bytes: int = 2048 * MIB
    stray_bytes: int = MIB // 16


DEFAULT_LIMITS = TurnLimits()


class LimitPassed(Exception):
    """Internal: ends the decoding at once. ``args[0]`` is the name of the limit."""
