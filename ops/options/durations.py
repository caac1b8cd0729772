"""Argparse types for time spans (90s, 5m, 1h, 7d) and counts."""

from __future__ import annotations

import argparse
import re

from ...store.model.times import LONGEST_S, SHORTEST_S, read_span


def milliseconds(text: str) -> int:
    """A time span in ms, at least 1; a plain number means seconds."""
    span = milliseconds_or_none(text)
    if not span:
        raise argparse.ArgumentTypeError(f"{text!r}: a time span is at least 1ms")
    return span


def milliseconds_or_none(text: str) -> int:
    """A time span in ms, or 0."""
    span = read_span(text)
    if span is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time span; write 90s, 5m, 1h or 7d")
    if span and not SHORTEST_S * 1000 <= span <= LONGEST_S * 1000:
        raise argparse.ArgumentTypeError(f"{text!r}: a time span is at least 1ms and at most a hundred years")
    return round(span)


def seconds(text: str) -> float:
    """A time span in seconds, at least a millisecond."""
    return milliseconds(text) / 1000


def seconds_or_none(text: str) -> float:
    """A time span in seconds, or 0 for no waiting."""
    return milliseconds_or_none(text) / 1000


def whole_number(text: str) -> int:
    """A count from 1 to 999999."""
    if not re.fullmatch(r"[0-9]{1,6}", text) or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 999999")
    return int(text)
