"""Decodes responses that were not streamed: one JSON document, with the same outcomes as a stream.

Decides whether a body is a document, an error, or something else. Must not know one dialect's fields.
"""

from __future__ import annotations

from ..dialects.table import TOKEN_FIELDS, dialect_of, spec_of
from ..turns.log import log_turn
from ..turns.reader import DialectReader
from ..turns.turn import Dialect, TurnResult
from ..turns.turn_builder import OpenTurn
from ..turns.verdict import decide_turn
from ..wire.frames import BadFrame, error_in, parse_frame
from ..wire.framing import BOM
from ..wire.json_scan import Repeated
from ..wire.limits import DEFAULT_LIMITS, LimitPassed, TurnLimits
from .parsed import json_of


def decode_body(
    body: object, dialect: Dialect, *, limits: TurnLimits | None = None, max_tokens: int | None = None
) -> TurnResult:
    """Decode a response that was not streamed. No bytes make it raise.

    Args:
        body: the whole response body as bytes, or the response object of the vendor's SDK.
        dialect: one of ``DIALECTS``.
        limits, max_tokens: as for ``TurnDecoder``.

    Raises:
        UnknownDialect: no such dialect.
        StreamMisuse: `max_tokens` is not a positive integer, or `body` is not a response.
    """
    data = bytes(body) if isinstance(body, (bytes, bytearray, memoryview)) else json_of(body)
    turn = OpenTurn(limits or DEFAULT_LIMITS, max_tokens, token_fields=TOKEN_FIELDS)
    reader = spec_of(dialect).reader(turn)
    try:
        _read(reader, data)
    except LimitPassed as passed:
        turn.limit = passed.args[0]
    return log_turn(decide_turn(reader, broken=False, bytes_seen=len(data)))


def _is_list_of_objects(document: object) -> bool:
    return isinstance(document, list) and all(type(item) is dict for item in document)


def _read(reader: DialectReader, body: bytes) -> None:
    turn = reader.turn
    if len(body) > turn.limits.total_bytes:
        raise LimitPassed("total_bytes")
    try:
        body.decode()
    except UnicodeDecodeError:
        turn.bad_utf8 = True
        body = body.decode("utf-8", "replace").encode()  # it may still hold an error
    try:
        document = parse_frame(body.removeprefix(BOM), turn.limits)
    except BadFrame:
        document = None
    if error := error_in(document):
        turn.fail(error)
    elif isinstance(document, dict):
        if type(document) is Repeated:
            turn.violate("a body with a duplicate key")
        if (found := dialect_of("", document)) not in (None, reader.dialect):
            turn.looks_like = found
        reader.body(document)
    elif not (_is_list_of_objects(document) and reader.bodies(document)):
        if body.lstrip().startswith((b"data:", b"event:")):
            turn.looks_like = "a stream of events (TurnDecoder)"
        turn.end("malformed", "a body that is not a JSON object")
