"""The way in and back: provider streams to turns and calls, outcomes to replies.

What decodes is here at once and costs little; what needs the store, a client or retries is loaded at its first use, so
that a program that only decodes loads no Redis client.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING

from .decoding.decoder import TurnDecoder
from .decoding.detect import guess_dialect
from .decoding.whole_body import decode_body
from .turns.drafts import ArgumentsDraft, CallComplete, CallDropped, CallOpened, Draft, TextDraft, TurnEnded
from .turns.errors import (
    DecoderClosed,
    LimitExceeded,
    NotOffered,
    StreamError,
    StreamMisuse,
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
from .turns.turn import DIALECTS, Dialect, RejectedCall, ToolCall, TurnOutcome, TurnResult
from .wire.frames import ProviderError
from .wire.limits import Limits

if TYPE_CHECKING:
    from .agent.conversation import Conversation
    from .dialects.parallel import forbid_parallel_calls
    from .harness.async_client import AsyncBatch, AsyncClient
    from .harness.batch import Batch
    from .harness.client import Client
    from .harness.queue_limits import QueueLimits
    from .provider.async_retry import read_turn_async, sending_async
    from .provider.response import Cancel
    from .provider.retry import Aborted, Budget, Watch, read_turn, sending
    from .replies.answers import for_model
    from .replies.translations import CATALOGUE, Catalogue, MessageCode
    from .replies.user_text import for_user, message_code

__all__ = [
    "CATALOGUE",
    "DIALECTS",
    "Aborted",
    "ArgumentsDraft",
    "AsyncBatch",
    "AsyncClient",
    "Batch",
    "Budget",
    "CallComplete",
    "CallDropped",
    "CallOpened",
    "Cancel",
    "Catalogue",
    "Client",
    "Conversation",
    "DecoderClosed",
    "Dialect",
    "Draft",
    "LimitExceeded",
    "Limits",
    "MessageCode",
    "NotOffered",
    "ProviderError",
    "QueueLimits",
    "RejectedCall",
    "StreamError",
    "StreamMisuse",
    "TextDraft",
    "ToolCall",
    "TurnAborted",
    "TurnDecoder",
    "TurnEnded",
    "TurnError",
    "TurnFailed",
    "TurnFiltered",
    "TurnMalformed",
    "TurnOutcome",
    "TurnPaused",
    "TurnResult",
    "TurnTruncated",
    "TurnWithheld",
    "UnknownDialect",
    "Watch",
    "decode_body",
    "for_model",
    "for_user",
    "forbid_parallel_calls",
    "guess_dialect",
    "message_code",
    "read_turn",
    "read_turn_async",
    "sending",
    "sending_async",
]

# A library decides no logging: without this, Python prints warnings of a program that set none up to its stderr.
for _name in ("toolonce.stream", "toolonce.inbox"):
    logging.getLogger(_name).addHandler(logging.NullHandler())

# Module -> what it brings. Type checkers read the imports above and see no `__getattr__`: they find misspelt names.
_AT_FIRST_USE = {
    "harness.async_client": ("AsyncBatch", "AsyncClient"),
    "provider.async_retry": ("read_turn_async", "sending_async"),
    "provider.response": ("Cancel",),
    "harness.batch": ("Batch",),
    "replies.translations": ("CATALOGUE", "Catalogue", "MessageCode"),
    "harness.client": ("Client",),
    "agent.conversation": ("Conversation",),
    "replies.user_text": ("for_user", "message_code"),
    "dialects.parallel": ("forbid_parallel_calls",),
    "provider.retry": ("Aborted", "Budget", "Watch", "read_turn", "sending"),
    "harness.queue_limits": ("QueueLimits",),
    "replies.answers": ("for_model",),
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        for module, names in _AT_FIRST_USE.items():
            if name in names:
                found = globals()[name] = getattr(import_module(f".{module}", __name__), name)
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
