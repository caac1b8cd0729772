"""The one table from a dialect's name to the class that reads it."""

from __future__ import annotations

from ..turns.errors import UnknownDialect
from ..turns.reader import DialectReader
from ..turns.turn_builder import OpenTurn
from .anthropic.reader import AnthropicReader
from .google_generate.reader import GenerateReader
from .google_interactions.reader import InteractionsReader
from .openai_chat.reader import ChatReader
from .openai_responses.reader import ResponsesReader

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
