"""A strict JSON reader without recursion, for texts that the fast parser refuses.

Decides whether a text is complete, cut, two objects, or not JSON, and marks what arguments must not contain: duplicate
keys, and numbers and depths beyond the limits. ``arguments.py`` decides what a mark means.
Grammar: RFC 8259, plus NaN and the infinities, which ``arguments.py`` refuses.
"""

from __future__ import annotations

import re
from typing import Any, Final


class CutText(ValueError):
    """The text is the beginning of a JSON value, and incomplete."""


class SecondObject(ValueError):
    """A complete object is followed by the beginning of another one."""


class NotJson(ValueError):
    """The text is neither JSON nor the beginning of it."""


class Mark(str):
    """Takes the place of a value that exceeds a limit."""

    __slots__ = ()


class Repeated(dict[str, Any]):
    """An object with a duplicate key; it holds the last value."""

    __slots__ = ()


TOO_DEEP: Final = Mark("too_deep")
TOO_LARGE: Final = Mark("too_large")

_BLANK = re.compile(r"[ \t\n\r]*")
_PLAIN = r'[^"\\\x00-\x1f]*'
_ESCAPED = r'(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})' + _PLAIN + ")*"
_STRING = re.compile(f'"{_PLAIN}{_ESCAPED}"')
_CUT_STRING = re.compile(rf'"{_PLAIN}{_ESCAPED}(?:\\(?:u[0-9a-fA-F]{{0,3}})?)?\Z')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_CUT_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.|(?:\.[0-9]+)?[eE][+-]?))?\Z")
_WORDS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
_UNESCAPE = re.compile(r'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))')
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def integer(digits: str, limit: int) -> int | Mark:
    """The integer, or ``TOO_LARGE`` where it has more digits than the limit."""
    if len(digits) - digits.startswith("-") > limit:
        return TOO_LARGE
    try:
        return int(digits)
    except ValueError:  # this process allows even fewer digits
        return TOO_LARGE


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object from its members; ``Repeated`` where a key occurs twice."""
    found = dict(pairs)
    return found if len(found) == len(pairs) else Repeated(pairs)


def join_surrogates(text: str) -> str:
    """The text with each surrogate pair joined into one character; a lone surrogate stays."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def scan(text: str, nesting: int, digits: int) -> Any:
    """The value of the text; objects and lists below ``nesting`` levels become ``TOO_DEEP``.

    Raises:
        CutText, SecondObject, NotJson: the text is not one JSON value; each class says why.
    """
    return _Scan(text, nesting, digits).run()


_OPENED: Final = object()
_COMMA: Final = object()


class _Container:
    """An object or list that is not closed yet."""

    __slots__ = ("items", "name", "pairs")

    def __init__(self, is_object: bool) -> None:
        self.pairs: list[tuple[str, Any]] | None = [] if is_object else None
        self.items: list[Any] = []
        self.name = ""

    def take(self, item: Any) -> None:
        if self.pairs is None:
            self.items.append(item)
        else:
            self.pairs.append((self.name, item))

    def value(self) -> Any:
        return self.items if self.pairs is None else members(self.pairs)


class _Scan:
    """One pass over the text; ``open`` holds the unclosed objects and lists, the innermost last."""

    def __init__(self, text: str, nesting: int, digits: int) -> None:
        self.text = text
        self.at = 0
        self.nesting = nesting
        self.digits = digits
        self.open: list[_Container] = []

    def run(self) -> Any:
        while True:
            item = self.item()
            while item is not _OPENED and self.open:
                item = self.after(item)
                if item is _COMMA:
                    break
            if item is not _OPENED and item is not _COMMA:
                self.nothing_more()
                return item

    def item(self) -> Any:
        """A scalar, an empty container, or ``_OPENED``: the first item of a container comes next."""
        char = self.char()
        if char not in "{[":
            return self.scalar(char)
        self.at += 1
        self.open.append(_Container(char == "{"))
        if self.char() == ("}" if char == "{" else "]"):
            return self.close()
        if char == "{":
            self.member_name()
        return _OPENED

    def after(self, item: Any) -> Any:
        """Add the item to its container and read what follows: ``_COMMA``, or the container, now closed."""
        container = self.open[-1]
        container.take(item)
        char = self.char()
        if char == ",":
            self.at += 1
            if container.pairs is not None:
                self.member_name()
            return _COMMA
        if char != ("]" if container.pairs is None else "}"):
            raise NotJson
        return self.close()

    def close(self) -> Any:
        self.at += 1
        too_deep = len(self.open) > self.nesting
        container = self.open.pop()
        return TOO_DEEP if too_deep else container.value()

    def member_name(self) -> None:
        if self.char() != '"':
            raise NotJson
        self.open[-1].name = self.string()
        if self.char() != ":":
            raise NotJson
        self.at += 1

    def char(self) -> str:
        """The next character that is not whitespace."""
        blank = _BLANK.match(self.text, self.at)
        assert blank is not None
        self.at = blank.end()
        if self.at == len(self.text):
            raise CutText
        return self.text[self.at]

    def scalar(self, char: str) -> Any:
        if char == '"':
            return self.string()
        for word, value in _WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        if any(word.startswith(self.text[self.at :]) for word in _WORDS if len(self.text) - self.at < len(word)):
            raise CutText
        return self.number()

    def number(self) -> Any:
        if _CUT_NUMBER.match(self.text, self.at):
            raise CutText
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            raise NotJson
        self.at = found.end()
        if found[1] or found[2]:
            return float(found[0])
        return integer(found[0], self.digits)

    def string(self) -> str:
        found = _STRING.match(self.text, self.at)
        if found is None:
            raise CutText if _CUT_STRING.match(self.text, self.at) else NotJson
        self.at = found.end()
        plain = _UNESCAPE.sub(_unescaped, found[0][1:-1])
        return plain if plain.isascii() else join_surrogates(plain)

    def nothing_more(self) -> None:
        try:
            char = self.char()
        except CutText:
            return
        is_object = self.text.lstrip(" \t\n\r").startswith("{")
        raise SecondObject if is_object and char == "{" else NotJson


def _unescaped(escape: re.Match[str]) -> str:
    return _SHORT.get(escape[1], escape[1]) if escape[1] else chr(int(escape[2], 16))
