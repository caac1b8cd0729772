"""Tool definitions of Google Interactions: ``{type: function, name, description, parameters}``, in JSON Schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...definitions.definition import Definition, DefinitionRules

RULES = DefinitionRules(
    names=r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}",
    in_words="a letter or '_', then up to 127 letters, digits, '_', '.', ':' or '-'",
    inline=True,
)


def entries(tools: Sequence[Definition]) -> list[Any]:
    return [{"type": "function", "name": tool.name, **tool.described, "parameters": tool.schema} for tool in tools]
