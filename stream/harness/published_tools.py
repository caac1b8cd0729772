"""The published tools of a namespace, in the shape of a dialect's requests; what `Client.tools` does with the specs."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ...store.model.errors import CorruptRecord, NoToolsPublished, StoreMisuse
from ...store.model.specs import Published
from ..definitions.definition import ToolNote
from ..dialects.tools import ToolDefinitions, described, offered

_UNREADABLE = "its spec cannot be read by this release; upgrade toolonce here"
log = logging.getLogger("toolonce.stream")


def nothing_published(place: str) -> NoToolsPublished:
    """The error for a namespace in which no worker has ever run."""
    return NoToolsPublished(
        f"no worker has published any tool in {place}; start one there: toolonce work --tools MODULE:REGISTRY; if one "
        "runs, it uses another server or namespace: compare `toolonce url --json` in both terminals"
    )


def definitions_of(found: Published, dialect: str, only: Iterable[str] | None, place: str) -> ToolDefinitions:
    """The definitions of the named tools, or of all published ones that can be offered.

    A tool that nobody named and that cannot be offered is another one's mistake: it is left out, noted and logged.

    Args:
        place: the store, for messages.

    Raises:
        UnknownDialect: no such dialect.
        NoToolsPublished: there is none.
        StoreMisuse, ToolNotOffered, CorruptRecord: a named tool is not published, is one that the provider would
            refuse, or has a spec that this release cannot read.
    """
    if not found.tools and not found.unreadable:
        raise nothing_published(place)
    if only is None:
        return _all_that_can_be(found, dialect)
    names = {only} if isinstance(only, str) else set(only)
    if unreadable := sorted(names & found.unreadable):
        raise CorruptRecord(f"tool {unreadable[0]}: {_UNREADABLE}")
    if unknown := sorted(names - set(found.tools)):
        raise StoreMisuse(
            f"no worker has published {', '.join(unknown)} in {place}; published are {', '.join(sorted(found.tools))}"
        )
    return offered((spec for name, spec in found.tools.items() if name in names), dialect)


def _all_that_can_be(found: Published, dialect: str) -> ToolDefinitions:
    made = described(found.tools.values(), dialect)
    made.notes += tuple(ToolNote(name, _UNREADABLE, refused=True) for name in sorted(found.unreadable))
    for note in made.notes:
        if note.refused:
            log.warning("tool %s is left out of the tools for %s: %s", note.tool, dialect, note.text)
    return made
