"""Every error of this package, as one tree:

StreamError
  TurnError                 a turn that gives no calls
    TurnTruncated           no proper end, or cut by a length limit
    TurnFiltered            a refusal, a safety or content filter
    TurnFailed              the provider reported an error
    TurnAborted             the transport broke, or the turn was cancelled
    TurnMalformed           the protocol was violated, or an argument text was cut
      LimitExceeded         the stream passed one of our limits
    TurnPaused              send the content back and run nothing
    TurnWithheld            the terminal is unknown or contradicts the turn
  StreamMisuse              the caller's fault
    UnknownDialect          no such dialect, or it could not be detected
    DecoderClosed           bytes or an end came after the end
    NotOffered              the provider has no such feature
      StreamingRefused      it does not stream with these tools

Errors never hold argument text or prose of the model, and survive pickling.
"""

from __future__ import annotations

from typing import Any

from ...store.model.errors import ToolonceError


class StreamError(ToolonceError):
    """The root: everything that this package raises on purpose."""


class TurnError(StreamError):
    """A turn that gives no calls. ``str()`` is safe to show; ``message`` is the provider's own prose, for logs.

    Attributes:
        outcome, dialect, turn_id, stop, bytes_seen, tokens_seen: as in ``TurnResult``.
        reason: why, in our words.
        code, message, status: the provider's own, each None where it gave none.
        limit: the name of the limit that was passed, if one was.
    """

    outcome: str = ""
    dialect: str
    turn_id: str | None
    reason: str | None
    stop: str | None
    code: str | None
    message: str | None
    status: int | str | None
    limit: str | None
    bytes_seen: int
    tokens_seen: int | None

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(dict.fromkeys(self._FIELDS) | fields)
        super().__init__(self._line())

    _FIELDS = (
        "dialect", "turn_id", "reason", "stop", "code", "message", "status", "limit", "bytes_seen", "tokens_seen",
    )  # fmt: skip

    def _line(self) -> str:
        what = f"{self.dialect} turn {self.turn_id or 'without id'} {self.outcome}"
        return f"{what}: {self.reason}" if self.reason else what

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), dict(self.__dict__))


def _rebuild(kind: type[TurnError], fields: dict[str, Any]) -> TurnError:
    return kind(**fields)


class TurnTruncated(TurnError):
    """The turn has no proper end, or was cut by a length limit."""

    outcome = "truncated"


class TurnFiltered(TurnError):
    """The turn was refused, or stopped by a safety or content filter."""

    outcome = "filtered"


class TurnFailed(TurnError):
    """The provider reported an error in place of a turn, or in it."""

    outcome = "failed"


class TurnAborted(TurnError):
    """The transport broke, or the turn was cancelled."""

    outcome = "aborted"


class TurnMalformed(TurnError):
    """The turn violates the protocol of its provider, or an argument text was cut."""

    outcome = "malformed"


class LimitExceeded(TurnMalformed):
    """The stream passed one of our limits; ``limit`` names it."""


class TurnPaused(TurnError):
    """The provider asks for the content back and for no call to be run."""

    outcome = "paused"


class TurnWithheld(TurnError):
    """The end of the turn is unknown to this release, or contradicts the turn."""

    outcome = "withheld"


class StreamMisuse(StreamError):
    """The caller used the package in a way that cannot work."""


class UnknownDialect(StreamMisuse):
    """No dialect of that name, or none that the bytes look like."""


class DecoderClosed(StreamMisuse):
    """Bytes or an end were given to a decoder that had its end already."""


class NotOffered(StreamMisuse):
    """The provider has no such feature; the message names the way out."""


class StreamingRefused(NotOffered):
    """The provider streams, but not with these tools: strict schemas are the known case."""


_BY_OUTCOME = {kind.outcome: kind for kind in TurnError.__subclasses__()}


def turn_error(outcome: str, **fields: Any) -> TurnError:
    """The error for an outcome other than ``completed``, with the attributes of ``TurnError``."""
    kind = LimitExceeded if fields.get("limit") else _BY_OUTCOME[outcome]
    return kind(**fields)
