"""Order keys of calls: which calls must run one after the other. Pure.

A tool's ``order_by`` names arguments, each with an optional normaliser: ``path`` makes spellings of one path equal,
``casefold`` makes letter case equal. Calls of one scope that share a lane run one by one, in order of admission.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from .identity import canonical, digest

NORMALISERS = ("path", "casefold")


def lanes(scope: str, tool: str, order_by: Sequence[str], arguments: Any) -> tuple[str, ...]:
    """The lanes of a call: one for each entry of `order_by` whose argument is there.

    The lane holds the argument's name and value, not the tool: two tools that edit the same ``path`` share it.
    """
    if not isinstance(arguments, Mapping):
        return ()
    found = []
    for entry in order_by:
        name, _, how = entry.partition(":")
        if name in arguments:
            found.append(digest("lane", scope, name, canonical(normalise(arguments[name], how))))
    return tuple(dict.fromkeys(found))


def turn_lane(turn_key: str) -> str:
    """The lane of a turn whose calls run strictly in call order."""
    return digest("turn lane", turn_key)


def check(order_by: Sequence[str]) -> str | None:
    """What is wrong with an ``order_by``, in one line."""
    for entry in order_by:
        _, _, how = entry.partition(":")
        if how and how not in NORMALISERS:
            return f"order_by {entry!r}: no normaliser {how!r}; there are {', '.join(NORMALISERS)}"
    return None


def normalise(value: Any, how: str) -> Any:
    """The value as the lane sees it; only text is changed."""
    if not isinstance(value, str):
        return value
    match how:
        case "path":
            return posixpath.normpath(value.replace("\\", "/")).removeprefix("./")
        case "casefold":
            return unicodedata.normalize("NFKC", value).casefold()
        case _:
            return value
