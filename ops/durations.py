"""Numbers as people type them: spans of time (90s, 5m, 1h, 7d) and how many. Argparse types."""

from __future__ import annotations

import argparse
import re

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\Z")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def milliseconds(text: str) -> int:
    """A span in ms; a bare number counts seconds."""
    match = _SPAN.match(text.strip().lower())
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is no span of time: 90s, 5m, 1h or 7d")
    return round(float(match[1]) * _UNIT_MS[match[2] or "s"])


def seconds(text: str) -> float:
    """The same in seconds."""
    return milliseconds(text) / 1000


def whole_number(text: str) -> int:
    """How many, at least one and below a million."""
    if not re.fullmatch(r"[0-9]{1,6}", text) or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 999999")
    return int(text)
