"""Patterns of schemas: read as ECMA-262 with Unicode, as JSON Schema says, and matched by RE2 in bounded time.

RE2 never backtracks: a match takes at most the length of the text times the size of the compiled pattern. What only a
backtracking engine can match (look-around, backreferences) is refused when the tool is registered.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

PATTERN_MEMORY = 4 * 2**20
"""Bytes for one compiled pattern. RE2 takes a quarter of two thirds for the program: at most 43,000 instructions."""
MATCH_UNITS_PER_STEP = 256
"""Instructions times characters that count as one step of validation: RE2 needs 3.5 ns for each at worst, as a rule far
less."""
# White space and line ends as ECMA-262 has them; RE2's \s knows ASCII alone, and its full stop only \n.
_SPACE = r"\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}"
_NOT_SPACE = (
    r"\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}"
    r"\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}"
)
_NOT_LINE_END = r"[^\n\r\x{2028}\x{2029}]"
_TOKEN = re.compile(
    r"\\u\{(?P<point>[0-9A-Fa-f]+)\}"
    r"|\\u(?P<high>[dD][89abAB][0-9A-Fa-f]{2})\\u(?P<low>[dD][c-fC-F][0-9A-Fa-f]{2})"
    r"|\\u(?P<unit>[0-9A-Fa-f]{4})"
    r"|\\c(?P<control>[A-Za-z])"
    r"|\\(?P<negated>[pP])\{(?:Script|sc|General_Category|gc)?=?(?P<property>\w+)\}"
    r"|\\(?P<escaped>.)"
    r"|(?P<mark>\[\^?\]?|\]|\.)"
    r"|(?P<plain>[^\\\[\].]+|\\)",
    re.DOTALL,
)
# Properties that RE2 knows by their short names only.
_CATEGORIES = {
    "Letter": "L", "Lowercase_Letter": "Ll", "Uppercase_Letter": "Lu", "Mark": "M", "Number": "N", "digit": "Nd",
    "Decimal_Number": "Nd", "Punctuation": "P", "punct": "P", "Symbol": "S", "Separator": "Z", "Other": "C",
}  # fmt: skip
_FOREIGN = {"C": "any byte", "Q": "a quotation", "E": "a quotation's end"}


class PatternRefused(ValueError):
    """A pattern that cannot be matched in bounded time, or is none; the text says why and what to write instead."""


class Pattern:
    """A compiled pattern.

    Args:
        text: ECMA-262 with Unicode, not anchored.

    Raises:
        PatternRefused: RE2 does not take it, or its program is too large.
    """

    __slots__ = ("_compiled", "_units")

    def __init__(self, text: str) -> None:
        self._compiled = _compile(text)
        self._units: int = self._compiled.programsize

    def cost(self, text: str) -> int:
        """Steps that a match with this text counts."""
        return len(text) * self._units // MATCH_UNITS_PER_STEP

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere in the text."""
        try:
            return self._compiled.search(text) is not None
        except UnicodeEncodeError:  # a lone surrogate: for RE2 it is what UTF-8 readers make of it
            shown = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return self._compiled.search(shown) is not None


@lru_cache(maxsize=512)
def _compile(text: str) -> Any:
    try:
        import re2  # only schemas with patterns need it
    except ImportError:
        raise PatternRefused("needs the package google-re2, which is not installed here") from None
    options = re2.Options()
    options.max_mem = PATTERN_MEMORY
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(_as_re2(text), options)
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0] if error.args else ""
        words = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        raise PatternRefused(
            f"cannot be matched in bounded time ({words}): look-around, backreferences and counts above 1000 are not "
            "taken; say lengths with minLength and maxLength, alternatives with anyOf, exclusions with not"
        ) from None


def _as_re2(text: str) -> str:
    """The same pattern in RE2's words. Where both mean the same, the text stays as it is."""
    out = []
    in_class = False
    for token in _TOKEN.finditer(text):
        mark = token["mark"]
        if mark is None:
            out.append(_escape(token, in_class=in_class))
        elif in_class:
            in_class = not mark.endswith("]")
            out.append(mark if mark in "]." else "\\" + mark)  # RE2 would read [: as the start of a named class
        elif mark == ".":
            out.append(_NOT_LINE_END)
        elif mark == "[]":
            out.append(r"[^\x00-\x{10ffff}]")
        elif mark == "[^]":
            out.append("(?s:.)")
        else:
            in_class = mark != "]"
            out.append(mark)
    return "".join(out)


def _escape(token: re.Match[str], *, in_class: bool) -> str:
    if hexadecimal := token["point"] or token["unit"]:
        return rf"\x{{{hexadecimal}}}"
    if high := token["high"]:
        return rf"\x{{{0x10000 + (int(high, 16) - 0xD800 << 10) + int(token['low'], 16) - 0xDC00:x}}}"
    if control := token["control"]:
        return rf"\x{{{ord(control) & 31:x}}}"
    if named := token["property"]:
        return rf"\{token['negated']}{{{_CATEGORIES.get(named, named)}}}"
    escaped = token["escaped"]
    if escaped in ("s", "S"):
        inner = _SPACE if escaped == "s" else _NOT_SPACE
        return inner if in_class else f"[{inner}]"
    if escaped in _FOREIGN:
        raise PatternRefused(f"holds \\{escaped}, which ECMA-262 does not know (in RE2 it is {_FOREIGN[escaped]})")
    return token[0]
