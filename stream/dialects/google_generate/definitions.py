"""Tool definitions of Google generateContent: one entry that holds all ``functionDeclarations``.

The schema is ``parametersJsonSchema``, which takes JSON Schema. ``parameters`` takes a subset of OpenAPI's, and one
keyword outside of it (``additionalProperties``, ``exclusiveMinimum``, ``$ref``) fails the whole request. References are
replaced even so: beside ``$ref`` only ``description`` and ``default`` are accepted.
"""

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
    declared = [{"name": tool.name, **tool.described, "parametersJsonSchema": tool.schema} for tool in tools]
    return [{"functionDeclarations": declared}] if declared else []
