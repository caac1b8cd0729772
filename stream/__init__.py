"""The way in and back: provider streams to turns and calls, outcomes to replies."""

from .bodies import decode_body
from .decoder import TurnDecoder
from .drafts import ArgumentsDraft, CallComplete, CallDropped, CallOpened, Draft, TextDraft, TurnEnded
from .errors import (
    DecoderClosed,
    LimitExceeded,
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

__all__ = [
    "DIALECTS",
    "ArgumentsDraft",
    "CallComplete",
    "CallDropped",
    "CallOpened",
    "DecoderClosed",
    "Dialect",
    "Draft",
    "LimitExceeded",
    "Limits",
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
    "decode_body",
    "guess_dialect",
]
