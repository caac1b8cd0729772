"""Checks times that are given as numbers. Pure.

A time that is zero, negative, NaN, infinite or too short to be kept in milliseconds is refused where it is given: it
would else be rounded to "at once", or to "no limit".
"""

from __future__ import annotations

import math
import re

SHORTEST_S = 0.001
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\Z")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
LONGEST_S = 3_155_760_000.0
"""A hundred years; the waits of the standard library overflow at about three hundred."""


def seconds(name: str, given: object) -> float:
    """A time in seconds, at least a millisecond and at most a hundred years.

    Raises:
        ValueError: anything else; one line that names it.
    """
    number = _number(name, given, "seconds")
    if number < 0:
        raise ValueError(f"{name} {given!r} is negative")
    if number == 0:
        raise ValueError(f"{name} must be positive, not {given!r}")
    if number < SHORTEST_S:
        raise ValueError(f"{name} {given!r} is shorter than a millisecond")
    if number > LONGEST_S:
        raise ValueError(f"{name} {given!r} is longer than a hundred years")
    return number


def span_ms(name: str, given: object) -> int:
    """A time span in whole milliseconds: a number of seconds, or a text such as ``90s``, ``1h`` or ``30d``.

    Raises:
        ValueError: anything else; one line that names it.
    """
    if not isinstance(given, str):
        return round(seconds(name, given) * 1000)
    span = read_span(given)
    if span is None:
        raise ValueError(f"{name} {given!r} is not a time span; write 90s, 5m, 1h or 7d")
    return round(seconds(name, span / 1000) * 1000)


def read_span(text: str) -> float | None:
    """The milliseconds of ``90s``, ``5m``, ``1h`` or ``7d``, a plain number being seconds; None for any other text."""
    match = _SPAN.match(text.strip().lower())
    return float(match[1]) * _UNIT_MS[match[2] or "s"] if match else None


def wait_limit(name: str, given: float | None) -> float | None:
    """How long someone is ready to wait, in seconds: None forever, 0 not at all.

    Raises:
        ValueError: negative, NaN, infinite or no number.
    """
    if given is not None and not 0 <= _number(name, given, "seconds") <= LONGEST_S:
        raise ValueError(f"{name} {given!r} is not a time to wait; None waits forever, 0 not at all")
    return given


def milliseconds(name: str, given: object) -> int:
    """The same as `seconds`, of a time that is given in whole milliseconds."""
    number = _number(name, given, "milliseconds")
    seconds(name, number / 1000)
    return round(number)


def _number(name: str, given: object, unit: str) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not _is_finite(given):
        raise ValueError(f"{name} {given!r} is not a number of {unit}")
    return float(given)


def _is_finite(given: float) -> bool:
    try:
        return math.isfinite(given)
    except OverflowError:  # an integer larger than any float
        return False
