"""Turns values of user code into what the store can hold: texts as UTF-8, values as JSON. Pure; nothing is ever
refused.

A lone surrogate becomes U+FFFD; NaN and infinities become the texts "NaN", "Infinity" and "-Infinity"; what
JSON has no form for becomes its `str`. Also: foreign text as people may be shown it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Set
from typing import Any

DEEPEST = 100
"""Levels of a plain value: the scripts of the store read JSON to a depth of 1,000, our own envelopes included."""

# What moves the cursor, ends a line, turns the direction of what follows, or cannot be seen: C0, DEL and C1 controls,
# line and paragraph separators, bidi controls, zero-width and other format marks, tags, lone surrogates.
# The joiners U+200C and U+200D stay: words of several scripts, and emoji, are spelled with them.
UNSEEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def whole_text(text: object) -> str:
    """The text of anything, fit for UTF-8."""
    try:
        words = str(text)
    except Exception:
        return "(its text cannot be read)"
    if words.isascii():
        return words
    return words.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def visible(words: str) -> str:
    """The words on one line; what would act on a terminal is shown as an escape (``\\x1b``, ``\\u202e``)."""
    return UNSEEN.sub(lambda mark: _SHORT.get(mark[0]) or _escape(ord(mark[0])), words)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


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
