"""Tool definitions of Cohere's chat, version 2: ``{type: function, function: {name, description, parameters}}``.

There is no ``strict`` in a tool, which is refused: ``strict_tools`` stands beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...definitions.definition import Definition, DefinitionRules

RULES = DefinitionRules(
    documented=r"[A-Za-z_][A-Za-z0-9_]*",
    in_words="documented as letters, digits and '_', no digit first",
    inline=True,
)


def entries(tools: Sequence[Definition]) -> list[Any]:
    return [
        {"type": "function", "function": {"name": tool.name, **tool.described, "parameters": tool.schema}}
        for tool in tools
    ]
