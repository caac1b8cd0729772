"""The way in and back: provider streams to turns and calls, outcomes to replies.

What decodes is here at once and costs little; what needs the store, a client or retries is loaded at its first use, so
that a program that only decodes loads no Redis client.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING

from .bodies import decode_body
from .decoder import TurnDecoder
from .drafts import ArgumentsDraft, CallComplete, CallDropped, CallOpened, Draft, TextDraft, TurnEnded
from .errors import (
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
from .guess import guess_dialect
from .limits import Limits
from .turn import DIALECTS, Dialect, ProviderError, RejectedCall, ToolCall, TurnOutcome, TurnResult

if TYPE_CHECKING:
    from .async_client import AsyncBatch, AsyncClient
    from .async_provider import read_turn_async, sending_async
    from .attempt import Cancel
    from .batch import Batch
    from .catalogue import CATALOGUE, Catalogue, MessageCode
    from .client import Client
    from .conversation import Conversation
    from .messages import for_user, message_code
    from .parallel import forbid_parallel_calls
    from .provider import Aborted, Budget, Watch, read_turn, sending
    from .queue_limits import QueueLimits
    from .reply_answers import for_model

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
    "async_client": ("AsyncBatch", "AsyncClient"),
    "async_provider": ("read_turn_async", "sending_async"),
    "attempt": ("Cancel",),
    "batch": ("Batch",),
    "catalogue": ("CATALOGUE", "Catalogue", "MessageCode"),
    "client": ("Client",),
    "conversation": ("Conversation",),
    "messages": ("for_user", "message_code"),
    "parallel": ("forbid_parallel_calls",),
    "provider": ("Aborted", "Budget", "Watch", "read_turn", "sending"),
    "queue_limits": ("QueueLimits",),
    "reply_answers": ("for_model",),
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
