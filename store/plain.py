"""What user code hands over, as the store can hold it: texts as UTF-8, values as JSON. Pure; nothing is ever refused.

Half of a surrogate pair becomes U+FFFD; NaN and infinities become the texts "NaN", "Infinity" and "-Infinity"; what
JSON has no form for becomes its `str`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from typing import Any

DEEPEST = 100
"""Levels of a plain value: the scripts of the store read JSON to a depth of 1,000, our own envelopes included."""


def whole_text(text: object) -> str:
    """The text of anything, fit for UTF-8."""
    try:
        words = str(text)
    except Exception:
        return "(its text cannot be read)"
    if words.isascii():
        return words
    return words.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def plain_value(value: Any, around: tuple[int, ...] = ()) -> Any:
    """A copy of a value as JSON holds it. `around`: the ids of what it lies in; what lies in itself ends there."""
    inside = (*around, id(value))
    match value:
        case None | bool():
            return value
        case int():
            return int(value)
        case float():
            return _number(float(value))
        case _ if len(around) >= DEEPEST or id(value) in around:
            return whole_text(value)
        case Mapping():
            return {whole_text(name): plain_value(item, inside) for name, item in value.items()}
        case list() | tuple() | Set():
            return [plain_value(item, inside) for item in value]
        case _:
            return whole_text(value)


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
