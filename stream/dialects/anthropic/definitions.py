"""Tool definitions of Anthropic Messages: ``{name, description, input_schema}``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...definitions.definition import Definition, DefinitionRules

RULES = DefinitionRules(
    names=r"[A-Za-z0-9_-]{1,128}",
    in_words="1 to 128 letters, digits, '_' or '-'",
    members=r"[A-Za-z0-9_.-]{1,64}",
    flat=True,
)


def entries(tools: Sequence[Definition]) -> list[Any]:
    return [{"name": tool.name, **tool.described, "input_schema": tool.schema} for tool in tools]
