"""The decoder of a streamed turn: it takes bytes, and returns drafts on the way and one result at the end. Sans-IO.

Decides how framing, reader and verdict work together, and what frames mean in every dialect. Must not know the frames
of a single dialect.
"""

from __future__ import annotations

from contextlib import suppress
from os import PathLike
from typing import TYPE_CHECKING

from ..dialects.table import TOKEN_FIELDS, dialect_of, spec_of
from ..turns.drafts import Draft
from ..turns.errors import DecoderClosed, NotOffered, StreamMisuse, UnknownDialect
from ..turns.log import log_turn
from ..turns.reader import Frame
from ..turns.turn import Dialect, TurnResult
from ..turns.turn_builder import OpenTurn
from ..turns.verdict import decide_turn
from ..wire.frames import BadFrame, error_event, error_in, is_json, parse_frame, stray_error
from ..wire.json_scan import Repeated
from ..wire.limits import DEFAULT_LIMITS, LimitPassed, TurnLimits
from .detect import LOOK_AT, detect_dialect, is_document
from .parsed import json_of, named_event, raised_error

if TYPE_CHECKING:
    from .recorder import Recorder


_BRACE = ord("{")
# Bytes kept to detect the dialect where no frame could be read.
_HEAD_BYTES = 4096


class TurnDecoder:
    """Decodes one streamed turn of one dialect.

    Feed it the body as it arrives, then call ``eof()`` for a clean end or ``abort()`` for a broken transport.
    The result does not depend on how the bytes are chunked. No bytes make it raise.

    Args:
        dialect: one of ``DIALECTS``.
        limits: how large the turn and its parts may be.
        record: a file to which the stream is written as test data, with secrets masked (see ``recorder.py``).
        max_tokens: the request's limit of output tokens. Some servers report ``tool_calls`` although that limit cut the
            call; with this argument, a turn whose usage reached the limit is ``truncated``. A complete turn of exactly
            that length is lost, so there is no default.
        trust_done: for ``openai-chat`` only. Some servers never send a finish reason; with this argument, a turn that
            ends with ``[DONE]`` is ``completed`` there as well, if the arguments of each call are one complete object
            with a member. A server that dies may send ``[DONE]`` too, so the default is False.

    Raises:
        UnknownDialect: no such dialect.
        StreamMisuse: `max_tokens` is not a positive integer.
        NotOffered: `record` is given for a binary stream, or `trust_done` for a dialect without ``[DONE]``.
    """

    def __init__(
        self,
        dialect: Dialect,
        *,
        limits: TurnLimits | None = None,
        record: str | PathLike[str] | None = None,
        max_tokens: int | None = None,
        trust_done: bool = False,
    ) -> None:
        limits = limits or DEFAULT_LIMITS
        self._turn = OpenTurn(limits, max_tokens, token_fields=TOKEN_FIELDS, trust_done=trust_done)
        spec = spec_of(dialect)
        if trust_done and not spec.reader.ends_with_done:
            raise NotOffered(f"streams of {spec.name} do not end with [DONE]")
        self._reader = spec.reader(self._turn)
        self._framing = spec.framing(self._turn.limits)
        self._bytes_seen = 0
        self._result: TurnResult | None = None
        self._looks_left = LOOK_AT
        self._head = b""
        if record is not None and self._framing.names_events:
            raise NotOffered(f"a recording masks secrets line by line, but a stream of {spec.name} is binary")
        self._recorder = _open_recorder(record, self._reader.dialect)

    @property
    def released(self) -> bool:
        """Whether the turn reached its release point, after which a broken transport changes nothing.

        A harness may call ``eof()`` now and not wait for the end of the transport. The release point of ``openai-chat``
        is ``[DONE]``; ``google-generate`` has none before the clean end.
        """
        return self._turn.released

    @property
    def finished(self) -> bool:
        """Whether the turn is released and its usage is known, so that ``eof()`` now loses nothing."""
        return self._turn.released and not self._turn.usage_due

    @property
    def result(self) -> TurnResult | None:
        """The result; None before ``eof()`` or ``abort()``."""
        return self._result

    def feed(self, chunk: bytes | bytearray | memoryview) -> list[Draft]:
        """Decode the next bytes, a chunk of any size.

        Returns:
            The drafts that these bytes produced, for a UI.

        Raises:
            DecoderClosed: after the end.
            StreamMisuse: the chunk is not bytes.
        """
        if not isinstance(chunk, (bytes, bytearray, memoryview)):
            raise StreamMisuse(f"feed takes bytes, not {type(chunk).__name__}")
        self._check_open()
        chunk = bytes(chunk)
        room = self._turn.limits.total_bytes - self._bytes_seen
        self._bytes_seen += len(chunk)
        if self._recorder:
            self._recorder.write(chunk)
        if self._looks_left == LOOK_AT:
            self._head += chunk[: _HEAD_BYTES - len(self._head)]
        if self._turn.limit is None:
            self._read(chunk[:room] if len(chunk) > room else chunk)
            if len(chunk) > room and self._turn.limit is None:
                self._turn.limit = "total_bytes"
        return self._turn.drafts.take()

    def feed_event(self, event: object) -> list[Draft]:
        """Decode the next event as the vendor's SDK has parsed it (a mapping or a model), instead of bytes.

        Vendors' SDKs raise the errors of a stream. Pass them to `abort`; the turn is then ``failed``. Bytes tell more:
        some SDKs drop ``[DONE]``, error events or call ids, or replace bytes that are not UTF-8.

        Raises:
            DecoderClosed: after the end.
            StreamMisuse: the object is not an event.
        """
        self._check_open()
        name, data = named_event(event) if self._framing.names_events else (b"", json_of(event))
        self._bytes_seen += len(data)
        if self._bytes_seen > self._turn.limits.total_bytes:
            self._turn.limit = self._turn.limit or "total_bytes"
        if self._turn.limit is None:
            try:
                self._event(name, data, damaged=False)
            except LimitPassed as passed:
                self._turn.limit = passed.args[0]
        return self._turn.drafts.take()

    def eof(self) -> TurnResult:
        """End the turn: the transport ended cleanly, or the turn is released and the rest does not matter.

        Raises:
            DecoderClosed: after the end.
        """
        self._check_open()
        if self._turn.limit is None:
            self._end()
        return self._finish(broken=False)

    def abort(self, cause: object = None) -> TurnResult:
        """End the turn: the transport broke. ``cause`` is the exception, or a text for the diagnostics.

        Raises:
            DecoderClosed: after the end.
        """
        self._check_open()
        self._framing.broken()
        if error := raised_error(cause):
            self._turn.fail(error)
        if cause is not None:
            self._turn.notes.append(f"transport: {cause if isinstance(cause, str) else type(cause).__name__}")
        return self._finish(broken=True)

    def closing_drafts(self) -> list[Draft]:
        """The drafts of the end, once: calls completed or dropped, and ``TurnEnded``. Empty before the end."""
        return self._turn.drafts.take() if self._result is not None else []

    def _check_open(self) -> None:
        if self._result is not None:
            raise DecoderClosed(f"this decoder has ended already: {self._result.outcome}")

    def _read(self, chunk: bytes) -> None:
        try:
            for name, data, damaged in self._framing.feed(chunk):
                self._event(name, data, damaged)
            self._turn.released |= bool(self._framing.ended)
        except LimitPassed as passed:
            self._turn.limit = passed.args[0]

    def _end(self) -> None:
        """End the framing. A last event without its blank line counts only if its data is complete JSON."""
        try:
            for name, data, damaged in self._framing.end():
                if data.strip() == b"[DONE]" or is_json(data, self._turn.limits):
                    self._event(name, data, damaged)
        except LimitPassed as passed:
            self._turn.limit = passed.args[0]

    def _event(self, name: bytes, data: bytes, damaged: bool) -> None:
        if self._framing.names_events:
            self._named(name, data)
        elif not data:
            return
        elif name == b"error":
            self._turn.fail(error_event(data))
        elif data[0] != _BRACE and data.strip() == b"[DONE]":
            self._reader.done()
        else:
            self._frame(name, data, damaged)

    def _named(self, name: bytes, data: bytes) -> None:
        """Read an event with its name outside of its data. Unknown names are skipped; empty data is an empty object."""
        if name == b"error":
            self._turn.fail(error_event(data))
        elif name.decode() in self._reader.kinds:
            try:
                self._frame(name, data or b"{}", damaged=False)
            except UnicodeDecodeError:
                self._turn.bad_utf8 = True

    def _frame(self, name: bytes, data: bytes, damaged: bool) -> None:
        try:
            frame = parse_frame(data, self._turn.limits)
        except BadFrame:
            self._turn.violate("a frame that is not JSON")
            self._framing.refused(data)
            if self._framing.ended is not None:  # one document of all frames: the rest of it means nothing
                self._turn.unreadable = "an array element that is not JSON"
            return
        if error := error_in(frame):
            self._turn.fail(error)
        elif type(frame) is Repeated:
            self._turn.violate("a frame with a duplicate key")
        elif type(frame) is not dict:
            self._turn.violate("a frame that is not an object")
        elif not damaged:
            if self._looks_left:
                self._compare_dialect(name, frame)
            self._reader.read(self._kind(name, frame), frame)

    def _compare_dialect(self, name: bytes, frame: Frame) -> None:
        """Note the dialect that the first distinctive frames belong to, where it is not the given one."""
        self._looks_left -= 1
        if (found := dialect_of(name.decode(), frame)) is not None:
            self._looks_left = 0
            self._turn.looks_like = found if found != self._reader.dialect else None

    def _detect_dialect(self) -> None:
        """Note the dialect that the bytes look like under another framing, where no frame could be read."""
        with suppress(UnknownDialect):
            found = detect_dialect(self._head)
            self._turn.looks_like = found if found != self._reader.dialect else None

    def _kind(self, name: bytes, frame: Frame) -> str:
        """The type of a frame: from its JSON, else the event's name. The two must not be different known types."""
        named = name.decode() if name else ""
        if self._framing.names_events:
            return named
        kind = frame.get("type") or frame.get("event_type")
        if not isinstance(kind, str):
            return named
        if named != kind and named in self._reader.kinds:
            self._turn.violate("an event with the name of another type")
        return kind

    def _finish(self, *, broken: bool) -> TurnResult:
        self._turn.bad_utf8 |= self._framing.bad_utf8
        self._turn.unreadable = self._turn.unreadable or self._framing.unreadable
        self._turn.ended = self._framing.ended
        if self._framing.stray and (error := stray_error(self._framing.stray)):
            self._turn.fail(error)
        if self._looks_left == LOOK_AT:
            documents = [line for line in self._framing.stray if line.startswith(b"{")]
            if len(documents) != 1:
                self._detect_dialect()
            if (documents or is_document(self._head)) and not (self._turn.looks_like or self._turn.error):
                self._turn.looks_like = "one JSON document (decode_body)"
        self._result = log_turn(decide_turn(self._reader, broken=broken, bytes_seen=self._bytes_seen))
        if self._recorder:
            self._recorder.close(self._result, broken=broken)
        return self._result


def _open_recorder(record: str | PathLike[str] | None, dialect: Dialect) -> Recorder | None:
    if record is None:
        return None
    from .recorder import Recorder

    return Recorder(record, dialect)
