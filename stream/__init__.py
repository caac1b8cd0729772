"""The way in and back: provider streams to turns and calls, outcomes to replies."""

from .async_client import AsyncBatch, AsyncClient
from .async_provider import read_turn_async, sending_async
from .attempt import Cancel
from .batch import Batch
from .bodies import decode_body
from .catalogue import CATALOGUE, Catalogue, MessageCode
from .client import Client
from .conversation import Conversation
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
from .messages import for_user, message_code
from .parallel import forbid_parallel_calls
from .provider import Aborted, Budget, Watch, read_turn, sending
from .reply_answers import for_model
from .turn import DIALECTS, Dialect, ProviderError, RejectedCall, ToolCall, TurnOutcome, TurnResult

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
