"""The decoder of a stream: bytes in, drafts on the way, one result at the end. Sans-IO.

Decides how the layers work together and what every frame may mean in any dialect. Must not know one dialect's frames.
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
from ..wire.frames import BadFrame, error_event, error_in, parse_frame, stray_error
from ..wire.json_scan import Repeated
from ..wire.limits import DEFAULT_LIMITS, LimitPassed, TurnLimits
from .detect import LOOK_AT, detect_dialect
from .parsed import json_of, named_event, raised_error

if TYPE_CHECKING:
    from .recorder import Recorder


_BRACE = ord("{")
# Enough to say what the bytes are, where nothing in them could be read.
_HEAD_BYTES = 4096


class TurnDecoder:
    """Decodes one streamed turn of one dialect.

    Feed it the body as it comes, then tell how it ended: ``eof()`` for a clean end, ``abort()`` for a broken one.
    The result does not depend on how the bytes were cut into pieces. No bytes make it raise.

    Args:
        dialect: one of ``DIALECTS``.
        limits: what one turn may ask of us.
        record: a file to write the stream to, secrets masked, as new test data (see ``recorder.py``).
        max_tokens: the limit of output tokens that the request asked for. Some servers say ``tool_calls`` where that
            limit cut the call; with this, a turn whose usage reached it is ``truncated``. Where the limit was reached
            by chance a good turn is lost, so it is not on by itself.
        trust_done: of ``openai-chat`` alone. Some servers never send a finish reason; with this, a turn that ends with
            ``[DONE]`` is ``completed`` there too, if the text of each call is one whole object with a member. A server
            that dies may send ``[DONE]`` as well, so it is not on by itself.

    Raises:
        UnknownDialect: no such dialect.
        StreamMisuse: `max_tokens` is no whole number from 1 on.
        NotOffered: a binary stream is to be recorded, or `[DONE]` trusted of a dialect that has none.
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
            raise NotOffered(f"a recording masks secrets line by line; a stream of {spec.name} is binary")
        self._recorder = _open_recorder(record, self._reader.dialect)

    @property
    def released(self) -> bool:
        """Whether the turn reached its release point: a broken transport changes nothing from here on.

        A harness that does not want to wait for the transport's end may call ``eof()`` now. Chat releases at
        ``[DONE]``, Generate at the clean end only.
        """
        return self._turn.released

    @property
    def finished(self) -> bool:
        """Whether the turn is released and its usage was told: nothing is lost by ``eof()`` now."""
        return self._turn.released and not self._turn.usage_due

    @property
    def result(self) -> TurnResult | None:
        """The result; None before ``eof()`` or ``abort()``."""
        return self._result

    def feed(self, chunk: bytes | bytearray | memoryview) -> list[Draft]:
        """Take the next bytes, in pieces of any size.

        Returns:
            Drafts of what these bytes brought, for a UI. They promise nothing.

        Raises:
            DecoderClosed: after the end.
            StreamMisuse: it is given something that is no bytes.
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
        """Take the next event that the vendor's own library has parsed: a mapping or a model. In place of bytes.

        boto3 raises the errors of a stream: give them to `abort`, and the turn is ``failed``.

        Raises:
            DecoderClosed: after the end.
            StreamMisuse: it is no event.
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
        """The transport ended cleanly (or the turn is released and nobody waits for the rest).

        Raises:
            DecoderClosed: after the end.
        """
        self._check_open()
        if self._turn.limit is None:
            self._end()
        return self._finish(broken=False)

    def abort(self, cause: object = None) -> TurnResult:
        """The transport broke; ``cause`` is what it raised, or any word for it.

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
        """The drafts that the end brought: calls completed or dropped, and ``TurnEnded``. Once; empty before it."""
        return self._turn.drafts.take() if self._result is not None else []

    def _check_open(self) -> None:
        if self._result is not None:
            raise DecoderClosed(f"this decoder had its end already: {self._result.outcome}")

    def _read(self, chunk: bytes) -> None:
        try:
            for name, data, damaged in self._framing.feed(chunk):
                self._event(name, data, damaged)
            self._turn.released |= bool(self._framing.ended)
        except LimitPassed as passed:
            self._turn.limit = passed.args[0]

    def _end(self) -> None:
        """The last event counts without its blank line only if its data is whole."""
        try:
            for name, data, damaged in self._framing.end():
                if _is_whole(data, self._turn.limits):
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
        """An event whose name stands outside of its data: an unknown one is not read; no data is an empty object."""
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
            return
        if error := error_in(frame):
            self._turn.fail(error)
        elif type(frame) is Repeated:
            self._turn.violate("a frame in which a member comes twice")
        elif type(frame) is not dict:
            self._turn.violate("a frame that is no object")
        elif not damaged:
            if self._looks_left:
                self._look(name, frame)
            self._reader.read(self._kind(name, frame), frame)

    def _look(self, name: bytes, frame: Frame) -> None:
        """The first frame that one dialect alone has says whether the caller named the right one."""
        self._looks_left -= 1
        if (found := dialect_of(name.decode(), frame)) is not None:
            self._looks_left = 0
            self._turn.looks_like = found if found != self._reader.dialect else None

    def _detect(self) -> None:
        """No frame could be read: another framing may read the same bytes."""
        with suppress(UnknownDialect):
            found = detect_dialect(self._head)
            self._turn.looks_like = found if found != self._reader.dialect else None

    def _kind(self, name: bytes, frame: Frame) -> str:
        """What kind of frame this is: the JSON tells, or else the event's name. Both may not tell different kinds."""
        named = name.decode() if name else ""
        if self._framing.names_events:
            return named
        kind = frame.get("type") or frame.get("event_type")
        if not isinstance(kind, str):
            return named
        if named != kind and named in self._reader.kinds:
            self._turn.violate("an event under the name of another one")
        return kind

    def _finish(self, *, broken: bool) -> TurnResult:
        self._turn.bad_utf8 |= self._framing.bad_utf8
        self._turn.unreadable = self._framing.unreadable
        self._turn.ended = self._framing.ended
        if self._framing.stray and (error := stray_error(self._framing.stray)):
            self._turn.fail(error)
        if self._looks_left == LOOK_AT and self._framing.stray and self._framing.stray[0].lstrip()[:1] == b"{":
            self._turn.looks_like = "one JSON document (decode_body)"
        elif self._looks_left == LOOK_AT:
            self._detect()
        self._result = log_turn(decide_turn(self._reader, broken=broken, bytes_seen=self._bytes_seen))
        if self._recorder:
            self._recorder.close(self._result, broken=broken)
        return self._result


def _is_whole(data: bytes, limits: TurnLimits) -> bool:
    if data.strip() == b"[DONE]":
        return True
    try:
        parse_frame(data, limits)
    except BadFrame:
        return False
    return True


def _open_recorder(record: str | PathLike[str] | None, dialect: Dialect) -> Recorder | None:
    if record is None:
        return None
    from .recorder import Recorder

    return Recorder(record, dialect)
