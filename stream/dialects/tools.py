"""The tools of a request in a dialect: their definitions, what there is to know about them, and where they go.

Pure: specs in, definitions out. Decides which tools are given out, and when parallel calls are forbidden; a provider's
rules and its shape are decided in its folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...store.model.specs import ToolSpec
from ..definitions.definition import ToolNote, define
from ..turns.errors import ToolNotOffered
from ..turns.turn import Dialect
from .table import spec_of


class ToolDefinitions(list[Any]):
    """The entries of a request's list of tools, as JSON values; a list, in the order of the tools' names.

    Attributes:
        dialect: in whose shape they are.
        notes: what there is to know: which tools are not strict and why, what a provider refuses or does not show.
        unordered: names of the tools whose calls do harm when two of them run at once, by what they declare: they
            change things, and have neither ``order_by`` nor ``concurrency=1``.
    """

    def __init__(
        self, entries: Iterable[Any], dialect: Dialect, notes: Iterable[ToolNote] = (), unordered: Iterable[str] = ()
    ) -> None:
        super().__init__(entries)
        self.dialect = dialect
        self.notes = tuple(notes)
        self.unordered = tuple(unordered)

    def request(self, base: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A copy of a request body with these tools after its own ones.

        Where some are `unordered`, it also has the provider's option that allows one call per turn. A provider without
        such an option gets none: submit with ``ordered=True``.
        """
        body = dict(base or {})
        if not self:
            return body
        request = spec_of(self.dialect).request
        body = _with_tools(body, request.TOOLS, self)
        return (request.at_most_one_call(body) or body) if self.unordered else body

    @property
    def options(self) -> dict[str, Any]:
        """The members of `request()` beside the tools: the option that allows one call per turn, or none."""
        member = spec_of(self.dialect).request.TOOLS[0]
        return {name: value for name, value in self.request().items() if name != member}


def offered(specs: Iterable[ToolSpec], dialect: str) -> ToolDefinitions:
    """The definitions of these tools.

    Raises:
        UnknownDialect: no such dialect.
        ToolNotOffered: the provider would refuse a request with one of them.
    """
    made = described(specs, dialect)
    refused = [f"tool {note.tool}: {note.text}" for note in made.notes if note.refused]
    if refused:
        raise ToolNotOffered(f"{dialect} would refuse a request with these tools: {'; '.join(refused)}")
    return made


def described(specs: Iterable[ToolSpec], dialect: str) -> ToolDefinitions:
    """The same without an error: a tool that the provider would refuse has a note and no entry.

    Raises:
        UnknownDialect: no such dialect.
    """
    row = spec_of(dialect)
    listed = sorted(specs, key=lambda spec: spec.name)
    places = {place for spec in listed for found in spec.opens_in.values() for place in found}
    made = [define(spec, row.definitions.RULES, _opened(spec, places)) for spec in listed]
    refused = {one.name for one in made if any(note.refused for note in one.notes)}
    entries = row.definitions.entries([one for one in made if one.name not in refused])
    unordered = [spec.name for spec in listed if not spec.parallel_safe and spec.name not in refused]
    notes = [note for one in made for note in one.notes]
    found = ToolDefinitions(entries, row.name, notes, unordered)
    if unordered and not found.options:
        text = f"may run in parallel with itself: {dialect} has no option against that (for every model); "
        text += "submit with ordered=True"
        found.notes += tuple(ToolNote(name, text) for name in unordered)
    return found


def _opened(spec: ToolSpec, places: Iterable[str]) -> list[str]:
    """The secret arguments of this tool in which a sealed value of some tool is opened."""
    return sorted(field for field in spec.secret if f"{spec.name}.{field}" in places)


def _with_tools(body: Mapping[str, Any], path: tuple[str, ...], tools: list[Any]) -> dict[str, Any]:
    member, *rest = path
    if rest:
        return {**body, member: _with_tools(body.get(member) or {}, tuple(rest), tools)}
    return {**body, member: [*body.get(member, ()), *tools]}
