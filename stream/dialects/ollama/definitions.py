"""Tool definitions of Ollama's chat: ``{type: function, function: {name, description, parameters}}``.

The server reads types, items, members and enums, and passes over other keywords. It shows ``$defs`` to the model, but
no ``$ref`` of an argument. Its own Python package (0.6.3) sends no ``anyOf`` and no members of an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...definitions.definition import Definition, DefinitionRules

RULES = DefinitionRules(flat=True, inline=True, lists_types=True)


def entries(tools: Sequence[Definition]) -> list[Any]:
    return [
        {"type": "function", "function": {"name": tool.name, **tool.described, "parameters": _shown(tool)}}
        for tool in tools
    ]


def _shown(tool: Definition) -> dict[str, Any]:
    for name, part in tool.schema["properties"].items():
        if isinstance(part, dict) and part.keys() & {"properties", "anyOf", "oneOf", "allOf", "$ref"}:
            tool.note(
                f"its argument {name!r} has parts of its own, which the ollama package leaves out of a request: the "
                "server shows them only where the request is sent as it is"
            )
    return tool.schema
