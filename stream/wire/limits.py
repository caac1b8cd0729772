"""How much one turn may ask of us: each limit by name, with the reason for its number.

A limit that is passed makes the turn ``malformed`` (or one call ``too_large`` / ``too_deep``), never a MemoryError
or a RecursionError. What the numbers bound is known elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """Overridable as a whole: ``TurnDecoder(dialect, limits=TurnLimits(calls=16))``.

    Attributes:
        line_bytes: one line. The last event of a Responses stream repeats the whole turn, JSON inside JSON, and
            may carry an image: four times the largest argument text.
        event_bytes: the data lines of one event together.
        argument_chars: argument text of one call; longer: ``too_large``. No model writes more than a few MB.
        calls: calls of one turn. The vendors take at most 128 tools; a loop in a server passes this soon.
        nesting: containers inside each other, the outer object included; deeper: ``too_deep``. Every JSON reader
            that a tool may use takes this depth.
        held_values: values in arguments that a program holds, shared ones counted each time: a few small lists that
            hold each other are endless to walk. More: ``too_large``.
        digits: digits of one integer; more: ``too_large``. Python's own limit against quadratic conversion.
        total_bytes: the whole stream. Ten million fragments of one character come to about 1.3 GB.
        stray_bytes: lines that are no SSE, kept to find an error document among them.
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
    """Inside the package only: stops the reading at once. ``args[0]`` is the name of the limit."""
