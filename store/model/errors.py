"""The base of all our errors, and those of the store. Expected answers (settled, busy, conflict, ...) are values.

ToolonceError           the base of every error of toolonce.store, .stream, .worker and .ops

StoreError
  StoreUnavailable      the server cannot be reached or did not answer; what was sent may or may not have happened
  StoreUnsafe           the server would lose or evict records; refused before anything is written
  StoreFull             admission is stopped: memory watermark or queue limit; nothing was written
  StoreMisuse           the caller's mistake
    NoToolsPublished    no worker has published any tool
    TurnIdMissing       the turn has no usable id and none was given
    CallIdMissing       a single call has neither a call id nor an intent key
    KeyringMissing      a tool has secret fields and no keys are configured
  StoreWentBack         a call that was stored is stored no longer; a repeat is held until a person has compared
  CorruptRecord         a stored record cannot be read by this version
  CallNotSucceeded      `Outcome.result_or_raise` was asked for a result that there is not
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .outcomes import Outcome


class ToolonceError(Exception):
    """The base of every error that toolonce raises on purpose; never raised itself.

    `worker.LeaseLost` and `worker.CancelRequested` are none of these: they pass the `except Exception` of a handler.
    """


class StoreError(ToolonceError):
    """Base of all; never raised itself. The message is one line: the cause and the way out."""


class StoreUnavailable(StoreError):
    """The server cannot be reached, or the reply was lost for longer than we re-send. Safe to do again: each script
    answers the same when it comes twice."""


class StoreUnsafe(StoreError):
    """The server keeps nothing on disk, or may evict what it keeps."""


class StoreFull(StoreError):
    """Nothing new is admitted for now; running work still settles."""


class StoreMisuse(StoreError):
    """The caller's mistake."""


class NoToolsPublished(StoreMisuse):
    """No worker has ever published a tool in this namespace, so nothing can be validated or run."""


class TurnIdMissing(StoreMisuse):
    """The turn carries no usable id; without one, a repeat cannot be told from a new call."""


class CallIdMissing(StoreMisuse):
    """A call that comes alone has neither a call id nor an intent key; a repeat cannot be told from a new call."""


class KeyringMissing(StoreMisuse):
    """Secret fields need TOOLONCE_KEYS, at the worker and at every harness that submits them."""


class StoreWentBack(StoreError):
    """A call that was admitted and had not come to rest is stored no longer: the store has lost writes. What became of
    it is not known; submitted again, a mutating call is held until a person has compared."""


class CorruptRecord(StoreError):
    """A stored record has a version or a shape that this release does not know."""


class CallNotSucceeded(StoreError):
    """A call has no result to give: it failed, was refused, conflicts, is not over, or its result is kept no longer.

    Attributes:
        outcome: the whole answer. An ``unknown`` one may have taken effect; a pending one may still succeed.
    """

    def __init__(self, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.outcome = outcome

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.outcome)
