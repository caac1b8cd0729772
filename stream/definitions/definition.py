"""One tool as a provider may show it to a model, and what there is to know about that.

Decides what the rules of a provider refuse, change or cannot show. Must not know which provider that is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce

from ...store.model.specs import ToolSpec
from . import schemas
from .schemas import Schema
from .strict import why_not_strict


@dataclass(frozen=True, slots=True)
class DefinitionRules:
    """What a provider accepts as the definition of a tool.

    Attributes:
        names: pattern of all names that it accepts; in_words: the same for people.
        documented: pattern of the names that its documentation allows, where it is not known to refuse others.
        members: pattern of the names of arguments that it accepts; None for any.
        description: most characters of a description, None for any; a longer one is cut.
        flat: a choice (``anyOf``, ...) at the root of a schema is refused.
        inline: references are refused, or not shown to the model.
        needs_items: an array that does not describe its items is refused.
        lists_types: a choice between plain types is understood as a list of types only.
        strict: it has OpenAI's strict mode.
    """

    names: str = r".+"
    in_words: str = ""
    documented: str = r".+"
    members: str | None = None
    description: int | None = None
    flat: bool = False
    inline: bool = False
    needs_items: bool = False
    lists_types: bool = False
    strict: bool = False


@dataclass(frozen=True, slots=True)
class ToolNote:
    """Something to know about a tool in the requests of a dialect.

    Attributes:
        text: a clause whose subject is the tool.
        refused: the provider would refuse a request with this tool; no definition of it is given out.
    """

    tool: str
    text: str
    refused: bool = False


@dataclass(slots=True)
class Definition:
    """A tool for a request: what its dialect puts into its own shape.

    Attributes:
        schema: JSON Schema of the arguments, an object at its root.
        strict: the schema fits OpenAI's strict mode; False where the provider has none.
    """

    name: str
    description: str
    schema: Schema
    strict: bool = False
    notes: list[ToolNote] = field(default_factory=list)

    def note(self, text: str, *, refused: bool = False) -> None:
        """Add a note."""
        self.notes.append(ToolNote(self.name, text, refused))

    @property
    def described(self) -> dict[str, str]:
        """The member ``description``, or none: an empty one is refused by some."""
        return {"description": self.description} if self.description else {}


def define(spec: ToolSpec, rules: DefinitionRules, sealed: Iterable[str] = ()) -> Definition:
    """The tool under these rules.

    Args:
        sealed: secret argument fields that open a sealed value which some tool returns.
    """
    made = Definition(spec.name, spec.description.strip(), schemas.as_object(spec.schema))
    _check_names(made, rules)
    if rules.description is not None and len(made.description) > rules.description:
        made.note(f"its description of {len(made.description):,} characters is cut to {rules.description:,}")
        made.description = made.description[: rules.description - 3].rsplit(None, 1)[0] + "..."
    if rules.inline:
        made.schema = schemas.inlined(made.schema)
    made.schema = schemas.accepting_sealed(made.schema, sealed)
    if rules.flat:
        made.schema, dropped = schemas.with_flat_root(made.schema)
        if dropped:
            text = "which is refused there: the model sees the members of all branches, and only toolonce the choice"
            made.note(f"its schema has {', '.join(dropped)} at the root, {text}")
    made.schema = reduce(schemas.rewritten, _changes(rules), made.schema)
    if rules.strict:
        why = why_not_strict(made.schema)
        made.strict = why is None
        if why:
            made.note(f"not strict: {why}")
    return made


def _changes(rules: DefinitionRules) -> Iterator[Callable[[Schema], Schema]]:
    if rules.needs_items:
        yield schemas.with_items
    if rules.lists_types:
        yield schemas.with_listed_types


def _check_names(made: Definition, rules: DefinitionRules) -> None:
    if not re.fullmatch(rules.names, made.name):
        made.note(f"its name is refused: a name there is {rules.in_words}; register it under another one", refused=True)
    elif not re.fullmatch(rules.documented, made.name):
        made.note(f"its name may be refused: a name there is {rules.in_words}")
    names = made.schema.get("properties", {}) if rules.members else {}
    if strange := [name for name in names if not re.fullmatch(rules.members or "", name)]:
        made.note(
            f"its argument {strange[0]!r} is refused: a name there matches {rules.members}; rename it", refused=True
        )
