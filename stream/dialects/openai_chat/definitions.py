"""Tool definitions of OpenAI Chat Completions: ``{type: function, function: {name, description, parameters, strict}}``.

``strict`` is left out where it is not true: not every compatible server knows it. A description of more than 1,024
characters is refused here (``string_above_max_length``), and as far as is known not in Responses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...definitions.definition import Definition, DefinitionRules

RULES = DefinitionRules(
    names=r"[A-Za-z0-9_-]{1,64}",
    in_words="1 to 64 letters, digits, '_' or '-'",
    description=1024,
    flat=True,
    needs_items=True,
    strict=True,
)


def entries(tools: Sequence[Definition]) -> list[Any]:
    return [{"type": "function", "function": _function(tool)} for tool in tools]


def _function(tool: Definition) -> dict[str, Any]:
    strict = {"strict": True} if tool.strict else {}
    return {"name": tool.name, **tool.described, "parameters": tool.schema, **strict}
