"""The harness side of toolonce: provider streams to turns and calls, and outcomes to replies.

Decoders are imported at once. Names that need the store, a client or retries are loaded at their first use, so that a
program that only decodes loads no Redis client.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..store.first_use import at_first_use
from .decoding.decoder import TurnDecoder
from .decoding.detect import detect_dialect
from .decoding.whole_body import decode_body
from .turns.drafts import (
    ArgumentsDraft,
    CallComplete,
    CallDropped,
    CallOpened,
    Draft,
    TextDraft,
    TurnEnded,
)
from .turns.errors import (
    DecoderClosed,
    LimitExceeded,
    NotOffered,
    StreamError,
    StreamingRefused,
    StreamMisuse,
    ToolNotOffered,
    TurnAborted,
    TurnError,
    TurnFailed,
    TurnFiltered,
    TurnMalformed,
    TurnPaused,
    TurnTruncated,
    TurnWithheld,
    UnknownDialect,
)
from .turns.turn import (
    DIALECTS,
    CallKind,
    Dialect,
    RejectedCall,
    ToolCall,
    TurnOutcome,
    TurnResult,
)
from .wire.frames import ProviderError
from .wire.limits import TurnLimits

if TYPE_CHECKING:
    from .agent.async_conversation import AsyncConversation
    from .agent.conversation import Conversation
    from .agent.terms import (
        Answer,
        AnswerEnd,
        AsyncAnswer,
        AsyncConversationOptions,
        AsyncHooks,
        ConversationOptions,
        Hooks,
        Terms,
    )  # fmt: skip
    from .definitions.definition import ToolNote
    from .dialects.request import (
        forbid_parallel_calls,
        request_body,
        user_message,
    )
    from .dialects.tools import ToolDefinitions
    from .harness.async_client import (
        AsyncBatch,
        AsyncClient,
    )
    from .harness.batch import Batch
    from .harness.client import Client
    from .harness.history import (
        history,
        replies,
    )
    from .harness.queue_limits import QueueLimits
    from .harness.single_call import CallOptions
    from .harness.submission import Intent
    from .provider.async_retry import AsyncHttpxClient, AsyncOpener, httpx_opener_async, read_turn_async
    from .provider.response import Cancel, Opener
    from .provider.retry import Aborted, Budget, HttpxClient, Observers, RequestOptions, httpx_opener, read_turn
    from .replies.answers import for_model
    from .replies.call_ids import IdForm
    from .replies.protocol import Message
    from .replies.translations import (
        TRANSLATIONS,
        MessageCode,
        Translations,
    )
    from .replies.user_text import (
        for_user,
        message_code,
    )

__all__ = [
    "DIALECTS",
    "TRANSLATIONS",
    "Aborted",
    "Answer",
    "AnswerEnd",
    "ArgumentsDraft",
    "AsyncAnswer",
    "AsyncBatch",
    "AsyncClient",
    "AsyncConversation",
    "AsyncConversationOptions",
    "AsyncHooks",
    "AsyncHttpxClient",
    "AsyncOpener",
    "Batch",
    "Budget",
    "CallComplete",
    "CallDropped",
    "CallKind",
    "CallOpened",
    "CallOptions",
    "Cancel",
    "Client",
    "Conversation",
    "ConversationOptions",
    "DecoderClosed",
    "Dialect",
    "Draft",
    "Hooks",
    "HttpxClient",
    "IdForm",
    "Intent",
    "LimitExceeded",
    "Message",
    "MessageCode",
    "NotOffered",
    "Observers",
    "Opener",
    "ProviderError",
    "QueueLimits",
    "RejectedCall",
    "RequestOptions",
    "StreamError",
    "StreamMisuse",
    "StreamingRefused",
    "Terms",
    "TextDraft",
    "ToolCall",
    "ToolDefinitions",
    "ToolNotOffered",
    "ToolNote",
    "Translations",
    "TurnAborted",
    "TurnDecoder",
    "TurnEnded",
    "TurnError",
    "TurnFailed",
    "TurnFiltered",
    "TurnLimits",
    "TurnMalformed",
    "TurnOutcome",
    "TurnPaused",
    "TurnResult",
    "TurnTruncated",
    "TurnWithheld",
    "UnknownDialect",
    "decode_body",
    "detect_dialect",
    "for_model",
    "for_user",
    "forbid_parallel_calls",
    "history",
    "httpx_opener",
    "httpx_opener_async",
    "message_code",
    "read_turn",
    "read_turn_async",
    "replies",
    "request_body",
    "user_message",
]

# The program configures logging, not the library. Without a handler, Python would print warnings to stderr.
for _name in ("toolonce.stream", "toolonce.inbox"):
    logging.getLogger(_name).addHandler(logging.NullHandler())

# Module -> names loaded from it. Type checkers read the imports above and see no `__getattr__`, so they find typos.
_AT_FIRST_USE: dict[str, tuple[str, ...]] = {
    ".harness.submission": ("Intent",),
    ".replies.protocol": ("Message",),
    ".replies.call_ids": ("IdForm",),
    ".agent.async_conversation": ("AsyncConversation",),
    ".agent.conversation": ("Conversation",),
    ".agent.terms": (
        "AnswerEnd",
        "Answer",
        "AsyncAnswer",
        "AsyncConversationOptions",
        "AsyncHooks",
        "ConversationOptions",
        "Hooks",
        "Terms",
    ),
    ".definitions.definition": ("ToolNote",),
    ".dialects.tools": ("ToolDefinitions",),
    ".dialects.request": (
        "forbid_parallel_calls",
        "request_body",
        "user_message",
    ),
    ".harness.async_client": (
        "AsyncBatch",
        "AsyncClient",
    ),
    ".harness.batch": ("Batch",),
    ".harness.client": ("Client",),
    ".harness.history": (
        "history",
        "replies",
    ),
    ".harness.queue_limits": ("QueueLimits",),
    ".harness.single_call": ("CallOptions",),
    ".provider.async_retry": (
        "AsyncHttpxClient",
        "AsyncOpener",
        "read_turn_async",
        "httpx_opener_async",
    ),
    ".provider.response": (
        "Opener",
        "Cancel",
    ),
    ".provider.retry": (
        "HttpxClient",
        "RequestOptions",
        "Aborted",
        "Budget",
        "Observers",
        "read_turn",
        "httpx_opener",
    ),
    ".replies.answers": ("for_model",),
    ".replies.translations": (
        "TRANSLATIONS",
        "Translations",
        "MessageCode",
    ),
    ".replies.user_text": (
        "for_user",
        "message_code",
    ),
}

if not TYPE_CHECKING:
    __getattr__ = at_first_use(__name__, _AT_FIRST_USE)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
