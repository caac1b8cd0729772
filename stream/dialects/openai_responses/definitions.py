"""Tool definitions of OpenAI Responses: ``{type: function, name, description, parameters, strict}``.

``strict`` always stands there: a request without it may be made strict, with optional members required and nullable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...definitions.definition import Definition, DefinitionRules

RULES = DefinitionRules(
    names=r"[A-Za-z0-9_-]{1,64}",
    in_words="1 to 64 letters, digits, '_' or '-'",
    flat=True,
    needs_items=True,
    strict=True,
)


def entries(tools: Sequence[Definition]) -> list[Any]:
    return [_entry(tool) for tool in tools]


def _entry(tool: Definition) -> dict[str, Any]:
    function = {"type": "function", "name": tool.name, **tool.described}
    return {**function, "parameters": tool.schema, "strict": tool.strict}
