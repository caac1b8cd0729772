"""One attempt to have a turn from a provider: its response read into a decoder, within a time, until told to stop.

Decides when an attempt is over. Must not know retries, histories or any HTTP library: a response is what has a status,
headers and bytes. A thread reads, so that limits and a stop hold even where the other side says nothing.
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
"""How much of an error's body is read: they are short, and an HTML page says nothing."""


class Response(Protocol):
    """What is needed of a response; httpx's and httpx2's have it."""

    @property
    def status_code(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def iter_bytes(self) -> Iterator[bytes]: ...
    def close(self) -> None: ...


Opener = Callable[[], Response]


class Cancel:
    """A stop that may be asked for from any thread, once and for good."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    @property
    def asked(self) -> bool:
        """Whether the turn is to be cancelled."""
        return self._asked.is_set()

    def cancel(self) -> None:
        """Cancel the turn, from any thread; a second time changes nothing."""
        self._asked.set()
        with self._lock:
            listeners, self._listeners = self._listeners, []
        for tell in listeners:
            tell()

    def tell(self, listener: Callable[[], None]) -> None:
        """Call it when the stop is asked for; at once if it was."""
        with self._lock:
            if not self.asked:
                self._listeners.append(listener)
                return
        listener()

    def forget(self, listener: Callable[[], None]) -> None:
        """Call this listener no more."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def sleep(self, seconds: float) -> None:
        """Sleep, or wake up when the stop is asked for."""
        self._asked.wait(seconds)


@dataclass(frozen=True, slots=True)
class ReadingTerms:
    """How to read. ``until`` is by ``time.monotonic``; ``idle_s`` the longest silence; ``max_tokens`` and
    ``trust_done`` as for `TurnDecoder`."""

    dialect: Dialect
    until: float
    idle_s: float
    streamed: bool = True
    on_draft: Callable[[Draft], None] | None = None
    cancel: Cancel = field(default_factory=Cancel)
    max_tokens: int | None = None
    trust_done: bool = False


@dataclass(frozen=True, slots=True)
class ResponseAttempt:
    """How one attempt ended. ``status`` is the response's, 0 where none came."""

    result: TurnResult
    status: int
    headers: Mapping[str, str]
    seconds: float


class _Stopped(Exception):
    """Why we stopped reading: ``cancelled``, ``idle`` or ``total``."""


def attempt(open_response: Opener, terms: ReadingTerms, lost: Callable[[ResponseAttempt], object]) -> ResponseAttempt:
    """Open and read one response to its end, whatever that is.

    Args:
        lost: told of an attempt that an exception ends, Ctrl-C above all: it is billed like any other.

    Raises:
        BaseException: what `open_response` raised, unless the line is to blame (see `is_line_error`); what a draft's
            listener raised; Ctrl-C.
    """
    began = time.monotonic()
    decoder = TurnDecoder(terms.dialect, max_tokens=terms.max_tokens, trust_done=terms.trust_done)
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
    """The attempt that began then (``time.monotonic``), with the response that came, or None."""
    status, headers = (response.status_code, response.headers) if response is not None else (0, {})
    return ResponseAttempt(_named(result, headers), status, headers, time.monotonic() - began)


def _named(result: TurnResult, headers: Mapping[str, str]) -> TurnResult:
    """The turn under the id in the response's header, where its dialect tells it there alone."""
    header = spec_of(result.dialect).turn_id.header
    turn_id = headers.get(header) if header and result.turn_id is None else None
    if not turn_id:
        return result
    calls = tuple(replace(call, turn_id=turn_id) for call in result.calls)
    rejected = tuple(replace(call, turn_id=turn_id) for call in result.rejected)
    return replace(result, turn_id=turn_id, calls=calls, rejected=rejected)


def was_sent(response: Any, error: BaseException) -> bool:
    """Whether the provider may bill it: an error of the opener's own program sent nothing."""
    return response is not None or not isinstance(error, Exception)


def is_line_error(error: BaseException) -> bool:
    """Whether the line broke rather than the program: the errors of sockets, and the transport errors of httpx."""
    names = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(error).__mro__}
    return isinstance(error, OSError) or bool(names & {"httpx.TransportError", "httpx2.TransportError"})


class _LineBroke(Exception):
    """The transport's own word for what broke."""


class _Reading:
    """One response, read by a thread of its own and taken from a queue within the limits."""

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
        return decode_body(b"".join(reading.chunks()), terms.dialect, max_tokens=terms.max_tokens)
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
    """The result for a response that is an error, whatever its body says."""
    told = error_event(body[:ERROR_BYTES])
    reason = f"the provider answered with HTTP {status}: {told.code or 'without a code'}"
    error = ProviderError(told.code, told.message, status)
    return TurnResult(dialect, "failed", error=error, diagnostics=(reason,), bytes_seen=len(body))
