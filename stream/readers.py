"""The one table from a dialect's name to the class that reads it."""

from __future__ import annotations

from .anthropic import AnthropicReader
from .dialect import DialectReader
from .errors import UnknownDialect
from .google_generate import GenerateReader
from .google_interactions import InteractionsReader
from .open_turn import OpenTurn
from .openai_chat import ChatReader
from .openai_responses import ResponsesReader

_CLASSES = (ResponsesReader, ChatReader, AnthropicReader, GenerateReader, InteractionsReader)
READERS: dict[str, type[DialectReader]] = {reader.dialect: reader for reader in _CLASSES}


def reader_for(dialect: str, turn: OpenTurn) -> DialectReader:
    """A reader for one turn.

    Raises:
        UnknownDialect: no such dialect.
    """
    try:
        return READERS[dialect](turn)
    except KeyError:
        raise UnknownDialect(f"no dialect {dialect!r}; there are: {', '.join(READERS)}") from None
