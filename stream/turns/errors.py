"""All errors of this package, as one tree:

StreamError
  TurnError                 a turn without calls to run
    TurnTruncated           no proper end, or cut by a length limit
    TurnFiltered            a refusal, a safety or content filter
    TurnFailed              the provider reported an error
    TurnAborted             the transport broke, or the turn was cancelled
    TurnMalformed           the protocol was violated, or an argument text was cut
      LimitExceeded         the stream exceeded one of `TurnLimits`
    TurnPaused              the provider asks to continue the turn; nothing is run
    TurnWithheld            the stop reason is unknown or contradicts the turn
  StreamMisuse              wrong use by the caller
    UnknownDialect          no such dialect, or none could be detected
    DecoderClosed           the decoder was used after its end
    NotOffered              the provider has no such feature
      StreamingRefused      it does not stream with these tools
      ToolNotOffered        it would refuse a request with this tool

Errors never contain argument text or text of the model, and can be pickled.
"""

from __future__ import annotations

from typing import Any

from ...store.model.errors import ToolonceError


class StreamError(ToolonceError):
    """The base class of all errors that this package raises."""


class TurnError(StreamError):
    """A turn without calls to run. ``str()`` is safe to show; ``message`` is the provider's text, for logs only.

    Attributes:
        outcome, dialect, turn_id, stop, bytes_seen, tokens_seen: as in ``TurnResult``.
        reason: why the turn has no calls, as toolonce words it.
        code, message, status: from the provider's error, each None where it gave none.
        limit: the name of the limit that was exceeded; None where none was.
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
    """The turn has no proper end, or a length limit cut it."""

    outcome = "truncated"


class TurnFiltered(TurnError):
    """The model refused, or a safety or content filter stopped the turn."""

    outcome = "filtered"


class TurnFailed(TurnError):
    """The provider reported an error instead of a turn, or inside it."""

    outcome = "failed"


class TurnAborted(TurnError):
    """The transport broke, or the turn was cancelled."""

    outcome = "aborted"


class TurnMalformed(TurnError):
    """The turn violates the protocol of its provider, or an argument text was cut."""

    outcome = "malformed"


class LimitExceeded(TurnMalformed):
    """The stream exceeded one of `TurnLimits`; ``limit`` names it."""


class TurnPaused(TurnError):
    """The provider asks to send the content back and continue the turn; no call is run."""

    outcome = "paused"


class TurnWithheld(TurnError):
    """The stop reason is unknown to this release, or contradicts the calls of the turn."""

    outcome = "withheld"


class StreamMisuse(StreamError):
    """The caller used the package in a way that cannot work."""


class UnknownDialect(StreamMisuse):
    """No dialect of that name, or none that the bytes look like."""


class DecoderClosed(StreamMisuse):
    """The decoder was used after ``eof()`` or ``abort()``."""


class NotOffered(StreamMisuse):
    """The provider has no such feature; the message says what to do instead."""


class StreamingRefused(NotOffered):
    """The provider does not stream responses with these tools; strict schemas are the known case."""


class ToolNotOffered(NotOffered):
    """The provider would refuse a request with these tools; the message names them and says why."""


_BY_OUTCOME = {kind.outcome: kind for kind in TurnError.__subclasses__()}


def turn_error(outcome: str, **fields: Any) -> TurnError:
    """The error for an outcome other than ``completed``, with the attributes of ``TurnError``."""
    kind = LimitExceeded if fields.get("limit") else _BY_OUTCOME[outcome]
    return kind(**fields)
