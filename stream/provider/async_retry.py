"""Reads live turns over asyncio. `retry` decides what is transient and how long to wait.

To stop, cancel the task: the attempt is reported to ``on_aborted``, and none of its calls is returned.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any, Protocol, TypeVar, Unpack

from tenacity import AsyncRetrying, retry_if_result, stop_after_attempt

from ..turns.turn import Dialect, TurnResult
from .response import ReadingTerms, ResponseAttempt, ended, is_line_error, refused, was_sent
from .retry import (
    NOBODY,
    USUAL,
    Budget,
    EndsBy,
    Observers,
    RequestOptions,
    account,
    is_transient,
    last_attempt,
    unless_streaming_is_refused,
    wait_for_provider,
)

T = TypeVar("T")


class AsyncResponse(Protocol):
    """The part of a response that is used; responses of httpx's and httpx2's async clients have it."""

    @property
    def status_code(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def aiter_bytes(self) -> AsyncIterator[bytes]: ...
    async def aclose(self) -> None: ...


AsyncOpener = Callable[[], Awaitable[AsyncResponse]]


class AsyncHttpxClient(Protocol):
    """The part of an async httpx client that is used."""

    async def send(self, request: Any, *, stream: bool = False) -> Any:
        """Send a request as httpx does; with `stream` the body is read later."""
        ...


def httpx_opener_async(client: AsyncHttpxClient, request: Any) -> AsyncOpener:
    """An opener that sends this request with an async client of httpx or httpx2."""

    async def open_response() -> AsyncResponse:
        response: AsyncResponse = await client.send(request, stream=True)
        return response

    return open_response


async def read_turn_async(
    open_response: AsyncOpener,
    dialect: Dialect,
    *,
    budget: Budget = USUAL,
    observers: Observers = NOBODY,
    **asked: Unpack[RequestOptions],
) -> TurnResult:
    """Get one turn from a provider, as `read_turn` does. ``observers.cancel`` is not used: cancel the task instead.
    ``observers.on_aborted`` may be a coroutine function."""
    terms = ReadingTerms(
        dialect, time.monotonic() + budget.total_s, budget.idle_s, on_draft=observers.on_draft, **asked
    )
    numbers = iter(range(1, budget.attempts + 1))

    async def tell(done: ResponseAttempt, number: int) -> None:
        told = account(done, number, observers)
        if isawaitable(told):
            await told

    async def once() -> ResponseAttempt:
        reading = _AsyncReading(terms)
        number = next(numbers)
        try:
            done = await reading.attempt(open_response)
        except BaseException as error:
            if was_sent(reading.response, error):
                cause = "cancelled" if isinstance(error, asyncio.CancelledError) else error
                await tell(reading.ended(reading.decoder.result or reading.decoder.abort(cause)), number)
            raise
        await tell(done, number)
        return done

    retrying = AsyncRetrying(
        stop=stop_after_attempt(budget.attempts) | EndsBy(terms.until),
        wait=wait_for_provider,
        retry=retry_if_result(is_transient),
        retry_error_callback=last_attempt,
    )
    last: ResponseAttempt = await retrying(once)
    return unless_streaming_is_refused(last.result)


class _AsyncStopped(Exception):
    """The reading stopped: ``idle``, ``total``, or the transport's error."""


class _AsyncReading:
    """One attempt to read a response."""

    def __init__(self, terms: ReadingTerms) -> None:
        self._terms = terms
        self._began = time.monotonic()
        self.response: AsyncResponse | None = None
        self.decoder = terms.decoder()

    async def attempt(self, open_response: AsyncOpener) -> ResponseAttempt:
        try:
            self.response = await self._in_time(open_response())
            result = await self._read(self.response)
        except _AsyncStopped as stop:
            result = self.decoder.abort(str(stop))
        finally:
            if self.response is not None:
                await self.response.aclose()
        return self.ended(result)

    def ended(self, result: TurnResult) -> ResponseAttempt:
        return ended(result, self.response, self._began)

    async def _read(self, response: AsyncResponse) -> TurnResult:
        if response.status_code >= 400 or not self._terms.streamed:
            body = b"".join([chunk async for chunk in self._chunks(response)])
            if response.status_code >= 400:
                return refused(self._terms.dialect, response.status_code, body)
            return self._terms.decode_body(body)
        async for chunk in self._chunks(response):
            self._show(self.decoder.feed(chunk))
            if self.decoder.finished:
                break
        result = self.decoder.eof()
        self._show(self.decoder.closing_drafts())
        return result

    async def _chunks(self, response: AsyncResponse) -> AsyncIterator[bytes]:
        chunks = response.aiter_bytes()
        while (chunk := await self._in_time(anext(chunks, None))) is not None:
            yield chunk

    async def _in_time(self, what: Awaitable[T]) -> T:
        left = self._terms.until - time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, min(left, self._terms.idle_s))):
                return await what
        except TimeoutError:
            raise _AsyncStopped("idle" if left > self._terms.idle_s else "total") from None
        except Exception as error:
            if is_line_error(error):
                raise _AsyncStopped(type(error).__name__) from error
            raise

    def _show(self, drafts: list[Any]) -> None:
        for draft in drafts:
            if self._terms.on_draft:
                self._terms.on_draft(draft)
