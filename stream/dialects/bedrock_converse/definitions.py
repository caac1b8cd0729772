"""Tool definitions of Bedrock Converse: ``{toolSpec: {name, description, inputSchema: {json}}}``.

``strict`` is left out: whether a model takes it, and with which keywords, differs from model to model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...definitions.definition import Definition, DefinitionRules

RULES = DefinitionRules(
    names=r"[A-Za-z0-9_-]{1,64}",
    in_words="1 to 64 letters, digits, '_' or '-'",
    flat=True,
    inline=True,
)


def entries(tools: Sequence[Definition]) -> list[Any]:
    return [{"toolSpec": {"name": tool.name, **tool.described, "inputSchema": {"json": tool.schema}}} for tool in tools]
