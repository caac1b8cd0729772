"""Tool definitions for requests, made by the part of this installation that knows the dialects.

A worker knows none. The function that makes definitions is an entry point of this distribution (group ``toolonce``), so
that neither package imports the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import distribution
from typing import Any

from ...store.model.errors import StoreMisuse
from ...store.model.specs import ToolSpec

_GROUP, _NAME = "toolonce", "tool_definitions"


def definitions(specs: Iterable[ToolSpec], dialect: str) -> Any:
    """The tools in the shape of a dialect's requests; see `Registry.definitions`."""
    return _maker()(specs, dialect)


@cache
def _maker() -> Callable[[Iterable[ToolSpec], str], Any]:
    for entry in distribution("toolonce").entry_points.select(group=_GROUP, name=_NAME):
        made: Callable[[Iterable[ToolSpec], str], Any] = entry.load()
        return made
    raise StoreMisuse(f"toolonce was installed without its entry point {_NAME!r}: install it again")
