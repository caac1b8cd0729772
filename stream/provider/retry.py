"""Reads live turns: repeats a request where that is safe and may help, and reports every lost attempt.

Decides what is transient, how long to wait, and when to give up. Each attempt has a new decoder, so a failed one leaves
nothing behind, and nothing is repeated once calls were returned. Must not know histories.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Protocol, TypedDict, Unpack

from tenacity import RetryCallState, Retrying, retry_if_result, stop_after_attempt
from tenacity.stop import stop_base
from tenacity.wait import wait_random_exponential

from ...store.model.times import seconds
from ..turns.drafts import Draft
from ..turns.errors import StreamingRefused
from ..turns.turn import Dialect, TurnResult
from .response import Cancel, Opener, ReadingTerms, Response, ResponseAttempt, attempt

TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
"""Statuses after which the request may be repeated unchanged, besides all of 5xx."""
# Error codes for overload inside a stream, where no status can be sent any more.
_TRANSIENT_WORDS = (
    "throttling", "modelstreamerror", "overloaded", "rate_limit",
    "too_many_requests", "resource_exhausted", "unavailable", "api_error", "server_error",
    "internal", "timeout", "deadline_exceeded",
)  # fmt: skip
_JITTER = wait_random_exponential(multiplier=0.5, max=20)


@dataclass(frozen=True, slots=True)
class Budget:
    """The time limits of one turn.

    Attributes:
        total_s: seconds for all attempts and the waits between them.
        idle_s: the longest time in seconds without bytes from the provider.
        attempts: most attempts. Each one is billed, also where it is cut.
    """

    total_s: float = 300.0
    idle_s: float = 60.0
    attempts: int = 3

    def __post_init__(self) -> None:
        seconds("total_s", self.total_s)
        seconds("idle_s", self.idle_s)


@dataclass(frozen=True, slots=True)
class Aborted:
    """An attempt that gave no turn, and what it may have cost.

    Attributes:
        outcome, reason: as in `TurnResult`.
        bytes_seen, tokens_seen: of the response as far as it arrived; the provider may bill more.
        seconds: from the request to the end of the attempt.
        attempt: 1 for the first attempt.
    """

    dialect: Dialect
    outcome: str
    reason: str
    status: int
    bytes_seen: int
    tokens_seen: int | None
    seconds: float
    attempt: int


@dataclass(frozen=True, slots=True)
class Observers:
    """Functions called while a turn is read: for drafts (a UI) and for lost attempts (cost control); and a cancel.

    ``on_aborted=client.note_aborted`` stores the notes that ``toolonce aborted`` lists.
    """

    on_draft: Callable[[Draft], None] | None = None
    on_aborted: Callable[[Aborted], object] | None = None
    cancel: Cancel | None = None


class RequestOptions(TypedDict, total=False):
    """Properties of the request that are needed to read its response; see `read_turn`."""

    streamed: bool
    max_tokens: int | None
    trust_done: bool


USUAL = Budget()
NOBODY = Observers()


class HttpxClient(Protocol):
    """The part of an httpx client that is used."""

    def send(self, request: Any, *, stream: bool = False) -> Any:
        """Send a request as httpx does; with `stream` the body is read later."""
        ...


def httpx_opener(client: HttpxClient, request: Any) -> Opener:
    """An opener that sends this request of httpx: ``httpx_opener(client, client.build_request("POST", url,
    json=...))``."""

    def open_response() -> Response:
        response: Response = client.send(request, stream=True)
        return response

    return open_response


def read_turn(
    open_response: Opener,
    dialect: Dialect,
    *,
    budget: Budget = USUAL,
    observers: Observers = NOBODY,
    **asked: Unpack[RequestOptions],
) -> TurnResult:
    """Get one turn from a provider.

    The request is repeated with a new decoder after a broken or silent connection, a transient status (408, 409, 429,
    5xx; ``Retry-After`` is obeyed) or an overload that the stream reports. It is not repeated after a length limit, a
    filter, a cancel, or a malformed turn.

    Args:
        open_response: sends the request and returns the response; called once for each attempt.
        streamed: False where the request did not ask for a stream.
        max_tokens: the request's limit of output tokens, as for `TurnDecoder`: a turn that used all of it is truncated.
        trust_done: the server never sends a finish reason, as for `TurnDecoder`; ``openai-chat`` only.

    Returns:
        The turn, whatever its outcome; ``require_calls()`` raises where it is not completed.

    Raises:
        StreamingRefused: the provider refuses to stream these tools.
        UnknownDialect: no such dialect.
        StreamMisuse: `max_tokens` is not a positive integer.
        Exception: what `open_response` raised, unless it is a network error.
    """
    cancel = observers.cancel or Cancel()
    until = time.monotonic() + budget.total_s
    terms = ReadingTerms(dialect, until, budget.idle_s, on_draft=observers.on_draft, cancel=cancel, **asked)
    numbers = iter(range(1, budget.attempts + 1))

    def once() -> ResponseAttempt:
        number = next(numbers)
        done = attempt(open_response, terms, lambda lost: account(lost, number, observers))
        account(done, number, observers)
        return done

    retrying = Retrying(
        stop=stop_after_attempt(budget.attempts) | EndsBy(terms.until),
        wait=wait_for_provider,
        retry=retry_if_result(lambda done: is_transient(done) and not cancel.asked),
        sleep=cancel.sleep,
        retry_error_callback=last_attempt,
    )
    result: TurnResult = retrying(once).result
    return unless_streaming_is_refused(result)


def is_transient(done: ResponseAttempt) -> bool:
    """Whether the same request may succeed if it is sent again."""
    result = done.result
    match result.outcome:
        case "aborted":
            return True
        case "truncated":
            return result.stop is None  # the connection ended cleanly in mid-turn; a length limit has a stop reason
        case "failed":
            status = result.error.status if result.error else None
            return _transient_status(done.status) or _transient_status(status) or _transient_words(result)
        case _:
            return False


def _transient_status(status: int | str | None) -> bool:
    return isinstance(status, int) and (status in TRANSIENT_STATUS or 500 <= status < 600)


def _transient_words(result: TurnResult) -> bool:
    words = f"{result.error.status} {result.error.code}".lower() if result.error else ""
    return any(word in words for word in _TRANSIENT_WORDS)


def wait_for_provider(state: RetryCallState) -> float:
    """Seconds to wait: the provider's ``Retry-After``, but never less than an exponential backoff with jitter."""
    assert state.outcome is not None
    headers = state.outcome.result().headers
    return max(retry_after(headers.get("retry-after")), _JITTER(state))


class EndsBy(stop_base):
    """Stops where the next attempt would begin after this time (``time.monotonic``).

    tenacity's `stop_before_delay` starts counting later, so that it would begin an attempt with no time left.
    """

    def __init__(self, until: float) -> None:
        self._until = until

    def __call__(self, retry_state: RetryCallState) -> bool:
        return time.monotonic() + retry_state.upcoming_sleep >= self._until


def retry_after(value: str | None) -> float:
    """The seconds of a ``Retry-After`` header, a number or a date (RFC 9110, 10.2.3); 0 where it is neither."""
    if not value:
        return 0.0
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return 0.0


def last_attempt(state: RetryCallState) -> ResponseAttempt:
    """For tenacity: return the last attempt instead of an exception when all attempts are used."""
    assert state.outcome is not None
    last: ResponseAttempt = state.outcome.result()
    return last


def account(done: ResponseAttempt, number: int, observers: Observers) -> object:
    """Report an attempt that gave no turn; returns what ``on_aborted`` returns, possibly a coroutine."""
    result = done.result
    if observers.on_aborted is None or result.outcome in ("completed", "paused"):
        return None
    reason = result.diagnostics[0] if result.diagnostics else result.outcome
    transport = next((note for note in result.diagnostics if note.startswith("transport: ")), reason)
    return observers.on_aborted(
        Aborted(
            result.dialect, result.outcome, transport, done.status, result.bytes_seen, result.tokens_seen,
            round(done.seconds, 3), number,
        )
    )  # fmt: skip


def unless_streaming_is_refused(result: TurnResult) -> TurnResult:
    """The result, unless the provider refused to stream with these schemas: a 400 whose text names both.

    Raises:
        StreamingRefused: the provider refused it.
    """
    error = result.error
    words = (error.message or "").lower() if error is not None and error.status in (400, 422) else ""
    if "stream" in words and ("strict" in words or "schema" in words):
        raise StreamingRefused(
            f"{result.dialect}: the provider refuses to stream with strict schemas; remove strict from the tools, or "
            "request without streaming: read_turn(..., streamed=False)"
        )
    return result
