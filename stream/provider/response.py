"""One attempt to get a turn from a provider: reads its response into a decoder, with time limits and a cancel.

Decides when an attempt is over. Must not know retries, histories or any HTTP library: a response is any object with
status, headers and bytes. A thread reads, so that limits and a cancel work even while the provider sends nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from ..decoding.decoder import TurnDecoder
from ..decoding.whole_body import decode_body
from ..dialects.table import spec_of
from ..turns.drafts import Draft
from ..turns.turn import Dialect, TurnResult
from ..wire.frames import ProviderError, error_event

ERROR_BYTES = 1 << 20
"""Bytes read of the body of an error response; errors are short, and the rest of an HTML page is useless."""


class Response(Protocol):
    """The part of a response that is used; responses of httpx and httpx2 have it."""

    @property
    def status_code(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def iter_bytes(self) -> Iterator[bytes]: ...
    def close(self) -> None: ...


Opener = Callable[[], Response]


class Cancel:
    """Cancels the reading of a turn, from any thread, for good."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    @property
    def asked(self) -> bool:
        """Whether `cancel` was called."""
        return self._asked.is_set()

    def cancel(self) -> None:
        """Cancel the turn, from any thread; a second call changes nothing."""
        self._asked.set()
        with self._lock:
            listeners, self._listeners = self._listeners, []
        for tell in listeners:
            tell()

    def tell(self, listener: Callable[[], None]) -> None:
        """Call this listener at the cancel; at once where it was called already."""
        with self._lock:
            if not self.asked:
                self._listeners.append(listener)
                return
        listener()

    def forget(self, listener: Callable[[], None]) -> None:
        """Remove this listener."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def sleep(self, seconds: float) -> None:
        """Sleep; a cancel ends it early."""
        self._asked.wait(seconds)


@dataclass(frozen=True, slots=True)
class ReadingTerms:
    """How a response is read. ``until``: the end by ``time.monotonic``; ``idle_s``: the longest time without bytes;
    ``max_tokens`` and ``trust_done``: as for `TurnDecoder`."""

    dialect: Dialect
    until: float
    idle_s: float
    streamed: bool = True
    on_draft: Callable[[Draft], None] | None = None
    cancel: Cancel = field(default_factory=Cancel)
    max_tokens: int | None = None
    trust_done: bool = False

    def decoder(self) -> TurnDecoder:
        """A decoder for one streamed response."""
        return TurnDecoder(self.dialect, max_tokens=self.max_tokens, trust_done=self.trust_done)

    def decode_body(self, body: bytes) -> TurnResult:
        """The turn of a response that was not streamed."""
        return decode_body(body, self.dialect, max_tokens=self.max_tokens)


@dataclass(frozen=True, slots=True)
class ResponseAttempt:
    """How one attempt ended. ``status``: of the HTTP response, 0 where there was none."""

    result: TurnResult
    status: int
    headers: Mapping[str, str]
    seconds: float


class _Stopped(Exception):
    """The reading stopped: ``cancelled``, ``idle`` or ``total``."""


def attempt(open_response: Opener, terms: ReadingTerms, lost: Callable[[ResponseAttempt], object]) -> ResponseAttempt:
    """Open and read one response to its end.

    Args:
        lost: called with an attempt that an exception ends, Ctrl-C above all, since the provider bills it as well.

    Raises:
        BaseException: what `open_response` raised, unless it is a network error (see `is_line_error`); what the
            listener of drafts raised; Ctrl-C.
    """
    began = time.monotonic()
    decoder = terms.decoder()
    reading = _Reading(open_response, terms)
    try:
        result = _error_result(reading) if reading.open().status_code >= 400 else _turn(reading, decoder)
    except (_Stopped, _LineBroke) as stop:
        result = decoder.abort(str(stop))
    except BaseException as error:
        if was_sent(reading.response, error):
            lost(ended(decoder.result or decoder.abort(error), reading.response, began))
        raise
    finally:
        reading.close()
    return ended(result, reading.response, began)


def ended(result: TurnResult, response: Any, began: float) -> ResponseAttempt:
    """The record of an attempt; ``began`` is by ``time.monotonic``, ``response`` is None where none came."""
    status, headers = (response.status_code, response.headers) if response is not None else (0, {})
    return ResponseAttempt(_named(result, headers), status, headers, time.monotonic() - began)


def _named(result: TurnResult, headers: Mapping[str, str]) -> TurnResult:
    """The turn with the id from the response's header, for dialects that send it only there."""
    header = spec_of(result.dialect).turn_id.header
    turn_id = headers.get(header) if header and result.turn_id is None else None
    if not turn_id:
        return result
    calls = tuple(replace(call, turn_id=turn_id) for call in result.calls)
    rejected = tuple(replace(call, turn_id=turn_id) for call in result.rejected)
    return replace(result, turn_id=turn_id, calls=calls, rejected=rejected)


def was_sent(response: Any, error: BaseException) -> bool:
    """Whether the provider may bill the attempt: where the opener itself failed, nothing was sent."""
    return response is not None or not isinstance(error, Exception)


def is_line_error(error: BaseException) -> bool:
    """Whether the error is of the network, not of the program: socket errors, and transport errors of httpx."""
    names = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(error).__mro__}
    return isinstance(error, OSError) or bool(names & {"httpx.TransportError", "httpx2.TransportError"})


class _LineBroke(Exception):
    """The transport broke; the text is its error."""


class _Reading:
    """One response: a thread reads it into a queue, and the caller takes chunks from there within the time limits."""

    def __init__(self, open_response: Opener, terms: ReadingTerms) -> None:
        self.terms = terms
        self.response: Response | None = None
        self._queue: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._closed = False
        terms.cancel.tell(self._stop)
        if not terms.cancel.asked:
            threading.Thread(target=self._read, args=(open_response,), name="toolonce-turn", daemon=True).start()

    def open(self) -> Response:
        kind, self.response = self._take()
        assert kind == "opened"
        assert self.response is not None
        return self.response

    def chunks(self) -> Iterator[bytes]:
        while (taken := self._take())[0] == "chunk":
            yield taken[1]

    def close(self) -> None:
        self._closed = True
        self.terms.cancel.forget(self._stop)
        if self.response is not None:
            self.response.close()

    def _take(self) -> tuple[str, Any]:
        left = self.terms.until - time.monotonic()
        try:
            kind, what = self._queue.get(timeout=max(0.0, min(left, self.terms.idle_s)))
        except Empty:
            raise _Stopped("idle" if left > self.terms.idle_s else "total") from None
        if kind == "stopped":
            raise _Stopped(what)
        if kind == "broke":
            raise (_LineBroke(type(what).__name__) if is_line_error(what) else what)
        return kind, what

    def _stop(self) -> None:
        self._queue.put(("stopped", "cancelled"))

    def _read(self, open_response: Opener) -> None:
        try:
            with closing(open_response()) as response:
                self._queue.put(("opened", response))
                for chunk in response.iter_bytes() if not self._closed else ():
                    if self._closed:
                        return
                    self._queue.put(("chunk", chunk))
            self._queue.put(("end", None))
        except Exception as error:
            self._queue.put(("broke", error))


def _turn(reading: _Reading, decoder: TurnDecoder) -> TurnResult:
    terms = reading.terms
    if not terms.streamed:
        return terms.decode_body(b"".join(reading.chunks()))
    try:
        for chunk in reading.chunks():
            _show(terms, decoder.feed(chunk))
            if decoder.finished:
                break
        result = decoder.eof()
    except (_Stopped, _LineBroke) as stop:
        result = decoder.abort(str(stop))
    _show(terms, decoder.closing_drafts())
    return result


def _show(terms: ReadingTerms, drafts: list[Draft]) -> None:
    for draft in drafts if terms.on_draft else ():
        assert terms.on_draft
        terms.on_draft(draft)


def _error_result(reading: _Reading) -> TurnResult:
    assert reading.response is not None
    body = b"".join(reading.chunks())
    return refused(reading.terms.dialect, reading.response.status_code, body)


def refused(dialect: Dialect, status: int, body: bytes) -> TurnResult:
    """The result for a response with an error status, whatever its body is."""
    reported = error_event(body[:ERROR_BYTES])
    reason = f"the provider answered with HTTP {status}: {reported.code or 'without a code'}"
    error = ProviderError(reported.code, reported.message, status)
    return TurnResult(dialect, "failed", error=error, diagnostics=(reason,), bytes_seen=len(body))
