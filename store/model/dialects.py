"""The names of the wire formats of providers, for all who name one; what they mean is decided in `stream/dialects`."""

from __future__ import annotations

from typing import Literal, get_args

Dialect = Literal[
    "openai-responses",
    "openai-chat",
    "anthropic",
    "google-generate",
    "google-interactions",
    "bedrock-converse",
    "ollama",
    "cohere",
]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
