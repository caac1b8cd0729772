"""Arguments that come piece by piece, each with the JSON path it belongs to.

Decides how a path (RFC 9535: names, quoted names, positions) is read and how pieces make one object.
Must not know whose frames the pieces come in.
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
    """The path is none, or does not fit to the pieces before it."""


def parse_path(path: str) -> Path:
    """The steps of a singular path: names as text, positions as numbers.

    Raises:
        BadPath: it is no path to one place.
    """
    if not path.startswith("$"):
        raise BadPath("a path without its root")
    steps: list[Step] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise BadPath("a path that leads to no single place")
        steps.append(_step(found))
        at = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    inner = found[found.lastindex or 0]  # of the four groups one has matched
    if found.lastgroup == "name":
        return inner
    if found.lastgroup == "position":
        return int(inner)
    return join_surrogates(_ESCAPE.sub(_unescaped, inner))


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _SHORT.get(escape[2], escape[2])


class _Text:
    """A string that comes in pieces; ``going_on`` while more was announced."""

    __slots__ = ("going_on", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.going_on = True


class PathAssembly:
    """One object out of pieces. Joining is linear: a place is looked up once per piece, built once at the end."""

    def __init__(self) -> None:
        self._places: dict[Path, Any] = {}
        self._paths: dict[str, Path] = {}  # read once: a long string brings its path with each of its pieces

    def put(self, path: str, value: Any) -> None:
        """A value that comes whole.

        Raises:
            BadPath: the path is none, or its place is taken.
        """
        steps = self._steps(path)
        if steps in self._places:
            raise BadPath("two values at one place")
        self._places[steps] = value

    def extend(self, path: str, piece: str, *, going_on: bool) -> None:
        """A piece of a string; ``going_on`` says that more of it will come. Raises as ``put``."""
        steps = self._steps(path)
        place = self._places.get(steps)
        if steps not in self._places:
            place = self._places[steps] = _Text()
        if not isinstance(place, _Text) or not place.going_on:
            raise BadPath("two values at one place")
        place.pieces.append(piece)
        place.going_on = going_on

    def close(self, path: str) -> None:
        """A piece without any value: it can only end a string. Raises as ``put``."""
        place = self._places.get(self._steps(path))
        if not isinstance(place, _Text) or not place.going_on:
            raise BadPath("a piece without a value")
        place.going_on = False

    def value(self) -> Any:
        """The object.

        Raises:
            BadPath: a string is not at its end, or the places do not make one object.
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
    """A list while it is put together: its items by position, which may come in any order."""

    __slots__ = ()


class _Tree:
    """The object as it grows; without recursion, since a path may have any length."""

    def __init__(self) -> None:
        self._root: dict[Any, Any] = {}
        self._lists: list[tuple[Any, Step, _Items]] = []  # outer ones first, each with where it hangs

    def put(self, steps: Path, value: Any) -> None:
        if not steps:
            raise BadPath("a value in the place of the object")
        container: Any = self._root
        for step, following in pairwise(steps):
            container = self._inner(container, step, {} if isinstance(following, str) else _Items())
        if _child(container, steps[-1], value) is not value:
            raise BadPath("two values at one place")

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
    """What is at this step; ``new`` is put there if nothing is."""
    if isinstance(container, dict) and isinstance(step, int) is isinstance(container, _Items):
        return container.setdefault(step, new)
    raise BadPath("a path that does not fit to the others")
