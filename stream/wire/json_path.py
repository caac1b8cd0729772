"""Assembles arguments that arrive in pieces, each with its JSON path.

Decides how a path is parsed (RFC 9535: names, quoted names, indexes) and how the pieces form one object.
Must not know which dialect sends them.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from .arguments import joined
from .json_scan import join_surrogates

Step = str | int
Path = tuple[Step, ...]

_BLANK = r"[ \t\n\r]*"
_STEP = re.compile(
    _BLANK + r"(?:\.(?P<name>[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]*)"
    rf"|\[{_BLANK}(?:"
    r"(?P<position>0|[1-9][0-9]{0,8})"
    r"""|'(?P<single>(?:[^'\\\x00-\x1f]|\\(?:['\\/bfnrt]|u[0-9A-Fa-f]{4}))*)'"""
    r'''|"(?P<double>(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*)"'''
    rf"){_BLANK}\])"
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))")
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class BadPath(ValueError):
    """The text is not a path, or contradicts the pieces before it."""


def parse_path(path: str) -> Path:
    """The steps of a path to one value: names as strings, indexes as integers.

    Raises:
        BadPath: it is not a path to one value.
    """
    if not path.startswith("$"):
        raise BadPath("a path without its root")
    steps: list[Step] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise BadPath("a path that does not lead to one value")
        steps.append(_step(found))
        at = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    inner = found[found.lastindex or 0]  # exactly one of the four groups has matched
    if found.lastgroup == "name":
        return inner
    if found.lastgroup == "position":
        return int(inner)
    return join_surrogates(_ESCAPE.sub(_unescaped, inner))


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _SHORT.get(escape[2], escape[2])


class _Text:
    """A string that arrives in pieces; ``going_on`` while more pieces are announced."""

    __slots__ = ("going_on", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.going_on = True


class PathAssembly:
    """Builds one object from pieces, in linear time: one lookup per piece, and one pass at the end."""

    def __init__(self) -> None:
        self._places: dict[Path, Any] = {}
        self._paths: dict[str, Path] = {}  # a cache: each piece of a long string repeats its path

    def put(self, path: str, value: Any) -> None:
        """Add a complete value.

        Raises:
            BadPath: the path is wrong, or another value has the same path.
        """
        steps = self._steps(path)
        if steps in self._places:
            raise BadPath("two values with one path")
        self._places[steps] = value

    def extend(self, path: str, piece: str, *, going_on: bool) -> None:
        """Add a piece of a string; ``going_on``: more pieces of it will follow. Raises as ``put``."""
        steps = self._steps(path)
        place = self._places.get(steps)
        if steps not in self._places:
            place = self._places[steps] = _Text()
        if not isinstance(place, _Text) or not place.going_on:
            raise BadPath("two values with one path")
        place.pieces.append(piece)
        place.going_on = going_on

    def close(self, path: str) -> None:
        """End a string, by a piece without a value. Raises as ``put``."""
        place = self._places.get(self._steps(path))
        if not isinstance(place, _Text) or not place.going_on:
            raise BadPath("a piece without a value")
        place.going_on = False

    def value(self) -> Any:
        """The object.

        Raises:
            BadPath: a string is incomplete, or the values do not form one object.
        """
        tree = _Tree()
        for steps, place in self._places.items():
            if isinstance(place, _Text) and place.going_on:
                raise BadPath("a string is cut")
            tree.put(steps, joined(place.pieces) if isinstance(place, _Text) else place)
        return tree.value()

    def _steps(self, path: str) -> Path:
        steps = self._paths.get(path)
        if steps is None:
            steps = self._paths[path] = parse_path(path)
        return steps


class _Items(dict[int, Any]):
    """A list under construction: items by index, since they may arrive in any order."""

    __slots__ = ()


class _Tree:
    """The object under construction. Without recursion, since a path may have any length."""

    def __init__(self) -> None:
        self._root: dict[Any, Any] = {}
        self._lists: list[tuple[Any, Step, _Items]] = []  # outer lists first, each with its parent and its step there

    def put(self, steps: Path, value: Any) -> None:
        if not steps:
            raise BadPath("a value with the path of the whole object")
        container: Any = self._root
        for step, following in pairwise(steps):
            container = self._inner(container, step, {} if isinstance(following, str) else _Items())
        if _child(container, steps[-1], value) is not value:
            raise BadPath("two values with one path")

    def value(self) -> dict[str, Any]:
        for container, step, items in reversed(self._lists):
            if max(items) >= len(items):
                raise BadPath("a list has a gap")
            container[step] = [items[position] for position in range(len(items))]
        return self._root

    def _inner(self, container: Any, step: Step, new: Any) -> Any:
        found = _child(container, step, new)
        if found is new and isinstance(new, _Items):
            self._lists.append((container, step, new))
        return found


def _child(container: Any, step: Step, new: Any) -> Any:
    """The value at this step; ``new`` is inserted where there is none."""
    if isinstance(container, dict) and isinstance(step, int) is isinstance(container, _Items):
        return container.setdefault(step, new)
    raise BadPath("a path that contradicts the others")
