"""The table of dialects: one row for each, found by its name or by a frame that only it has.

A new dialect is one folder (``reader``, ``replies``, ``request``, ``definitions``, and what else it needs), its name in
``Dialect``, and one row. Decides nothing itself: the modules of the dialects do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from ..turns.errors import UnknownDialect
from ..turns.reader import DialectReader, Frame
from ..turns.turn import DIALECTS, Dialect
from ..wire.event_stream import EventStreamReader
from ..wire.framing import Framing
from ..wire.json_array import ArrayOrEvents
from ..wire.limits import TurnLimits
from ..wire.ndjson import NdjsonReader
from ..wire.sse import SseReader
from .anthropic import reader as anthropic
from .anthropic import request as anthropic_request
from .bedrock_converse import reader as bedrock_converse
from .bedrock_converse import request as bedrock_converse_request
from .cohere import reader as cohere
from .cohere import request as cohere_request
from .google_generate import reader as google_generate
from .google_generate import request as google_generate_request
from .google_interactions import reader as google_interactions
from .google_interactions import request as google_interactions_request
from .ollama import reader as ollama
from .ollama import request as ollama_request
from .openai_chat import reader as openai_chat
from .openai_chat import request as openai_chat_request
from .openai_responses import reader as openai_responses
from .openai_responses import request as openai_responses_request

if TYPE_CHECKING:
    from ..definitions.definition import Definition, DefinitionRules
    from ..replies.protocol import ReplyModule


class RequestModule(Protocol):
    """The request module of a dialect."""

    @property
    def HISTORY(self) -> str:  # noqa: N802  a module's constant
        """The member of a request that holds the history."""

    @property
    def TURN_MEMBER(self) -> str | None:  # noqa: N802
        """The member that holds the content of a message, where user and model must alternate; else None."""

    @property
    def STREAMED(self) -> Mapping[str, Any]:  # noqa: N802
        """The members that request a stream; empty where the URL path does."""

    @property
    def TOOLS(self) -> tuple[str, ...]:  # noqa: N802
        """The path of the member that holds the list of tools."""

    def user_message(self, content: str | Sequence[dict[str, Any]]) -> dict[str, Any]:
        """A user's message in the form of the dialect, of a text or of content blocks."""

    def with_system(self, body: Mapping[str, Any], text: str) -> dict[str, Any]:
        """A copy of a body with the system prompt."""

    def pairs(self, message: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """By what each call, and each result, in a message of the history is paired: its id as a rule."""

    def at_most_one_call(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """A copy of a body with tools that allows at most one call per turn; None where there is no such option."""


class DefinitionsModule(Protocol):
    """The definitions module of a dialect."""

    @property
    def RULES(self) -> DefinitionRules:  # noqa: N802
        """What the provider accepts as the definition of a tool."""

    def entries(self, tools: Sequence[Definition]) -> list[Any]:
        """The list of tools of a request; () gives an empty one. May add notes to the definitions."""


@dataclass(frozen=True, slots=True)
class TurnIdSource:
    """Where a response holds its turn id. Readers take the first non-empty one; ``submit`` refuses a turn without one.

    Attributes:
        member: the path in a frame, and in a whole response where that differs.
        first: the frame in which it first appears.
        missing: which servers send none, an empty one, or one that repeats.
        header: the HTTP header that holds it where the body does not; None where none does.
    """

    member: str
    first: str
    missing: str
    header: str | None = None


@dataclass(frozen=True, slots=True)
class DialectSpec:
    """One row of the table.

    Attributes:
        framing: makes the object that splits the bytes of one turn into events.
        reader: makes the object that reads the frames of one turn.
        request: the module that builds requests.
        turn_id: where a response holds its turn id.
        token_fields: the members of ``usage`` that hold the number of output tokens.
        detect: whether a frame or whole response can only be of this dialect, from its kind and its content. The kind
            is the type, else the event's name, else empty.
    """

    name: Dialect
    framing: Callable[[TurnLimits], Framing]
    reader: type[DialectReader]
    request: RequestModule
    turn_id: TurnIdSource
    token_fields: tuple[str, ...]
    detect: Callable[[str, Frame], bool]

    @property
    def replies(self) -> ReplyModule:
        """The module that builds replies. Loaded at first use: it needs the store, decoding does not."""
        return cast("ReplyModule", self._module("replies"))

    @property
    def definitions(self) -> DefinitionsModule:
        """The module that makes tool definitions. Loaded at first use, for the same reason."""
        return cast("DefinitionsModule", self._module("definitions"))

    def _module(self, name: str) -> Any:
        return import_module(f".{self.name.replace('-', '_')}.{name}", __package__)


# In the order in which `dialect_of` tries them.
_ROWS = (
    DialectSpec(
        name="openai-responses",
        framing=SseReader,
        reader=openai_responses.ResponsesReader,
        request=openai_responses_request,
        turn_id=TurnIdSource(
            member="response.id; in a body: id",
            first="response.created",
            missing="some proxies start with output_item.added and send it in response.completed only",
        ),
        token_fields=("output_tokens",),
        detect=openai_responses.detect,
    ),
    DialectSpec(
        name="anthropic",
        framing=SseReader,
        reader=anthropic.AnthropicReader,
        request=anthropic_request,
        turn_id=TurnIdSource("message.id; in a body: id", first="message_start", missing="no known server"),
        token_fields=("output_tokens",),
        detect=anthropic.detect,
    ),
    DialectSpec(
        name="google-interactions",
        framing=SseReader,
        reader=google_interactions.InteractionsReader,
        request=google_interactions_request,
        turn_id=TurnIdSource(
            member="interaction.id, or interaction_id of a status update; in a body: id",
            first="interaction.created",
            missing="empty with store=false",
        ),
        token_fields=("total_output_tokens",),
        detect=google_interactions.detect,
    ),
    DialectSpec(
        name="openai-chat",
        framing=SseReader,
        reader=openai_chat.ChatReader,
        request=openai_chat_request,
        turn_id=TurnIdSource(
            member="id",
            first="the first chunk; Azure's first one (prompt filter results) has an empty id",
            missing="some compatible servers send none, or choose it from 999 values",
        ),
        token_fields=("completion_tokens",),
        detect=openai_chat.detect,
    ),
    DialectSpec(
        name="google-generate",
        framing=ArrayOrEvents,
        reader=google_generate.GenerateReader,
        request=google_generate_request,
        turn_id=TurnIdSource("responseId", first="the first chunk", missing="older servers and some proxies send none"),
        token_fields=("candidatesTokenCount",),
        detect=google_generate.detect,
    ),
    DialectSpec(
        name="bedrock-converse",
        framing=EventStreamReader,
        reader=bedrock_converse.ConverseReader,
        request=bedrock_converse_request,
        turn_id=TurnIdSource(
            member="none; the header x-amzn-RequestId, and in a response of boto3 ResponseMetadata.RequestId",
            first="the response's head",
            missing="the stream itself holds none",
            header="x-amzn-requestid",
        ),
        token_fields=("outputTokens",),
        detect=bedrock_converse.detect,
    ),
    DialectSpec(
        name="ollama",
        framing=NdjsonReader,
        reader=ollama.OllamaReader,
        request=ollama_request,
        turn_id=TurnIdSource("none", first="nowhere", missing="all of them: the harness gives its own `turn_id`"),
        token_fields=("eval_count",),
        detect=ollama.detect,
    ),
    DialectSpec(
        name="cohere",
        framing=SseReader,
        reader=cohere.CohereReader,
        request=cohere_request,
        turn_id=TurnIdSource("id", first="message-start", missing="no known server"),
        token_fields=("output_tokens",),
        detect=cohere.detect,
    ),
)
TABLE: dict[Dialect, DialectSpec] = {row.name: row for row in _ROWS}

# Of all dialects, in the order of `DIALECTS`: a proxy may report usage under the names of another dialect.
TOKEN_FIELDS = tuple(dict.fromkeys(field for name in DIALECTS for field in TABLE[name].token_fields))


def spec_of(dialect: str) -> DialectSpec:
    """The dialect's row.

    Raises:
        UnknownDialect: no such dialect.
    """
    row = TABLE.get(cast(Dialect, dialect))
    if row is None:
        raise UnknownDialect(f"no dialect {dialect!r}; use one of {', '.join(DIALECTS)}")
    return row


def dialect_of(name: str, frame: Frame) -> Dialect | None:
    """The only dialect that this frame or whole response can be of; None where several or none fit."""
    kind = str(frame.get("type") or frame.get("event_type") or name)
    return next((row.name for row in _ROWS if row.detect(kind, frame)), None)
