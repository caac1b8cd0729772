"""Short ways to feed a decoder frames in tests."""

from __future__ import annotations

import json
from typing import Any

from tests.support.stream.transcripts import random_pieces, single_bytes
from toolonce.stream import TurnDecoder, TurnResult
from toolonce.stream.turns.turn import Dialect

Frame = dict[str, Any]


def stream(*frames: Frame | bytes) -> bytes:
    """Frames as data-only events; bytes are put in as they are."""
    return b"".join(f if isinstance(f, bytes) else b"data: " + json.dumps(f).encode() + b"\n\n" for f in frames)


def decoded(dialect: Dialect, *frames: Frame | bytes, broken: bool = False) -> TurnResult:
    decoder = TurnDecoder(dialect)
    decoder.feed(stream(*frames))
    return decoder.abort() if broken else decoder.eof()


def in_all_pieces(dialect: Dialect, data: bytes, *, broken: bool = False, **options: Any) -> TurnResult:
    """The result of a stream, which is the same in one piece, byte by byte and in pieces of any size."""
    ways = [[data], single_bytes(data), random_pieces(data, seed=dialect)]
    results = []
    for pieces in ways:
        decoder = TurnDecoder(dialect, **options)
        for piece in pieces:
            decoder.feed(piece)
        results.append(decoder.abort() if broken else decoder.eof())
    assert results[0] == results[1] == results[2]
    return results[0]


def short(result: TurnResult) -> tuple[Any, ...]:
    """Outcome, calls as (name, id, arguments), refusals as (name, reason)."""
    calls = [(call.name, call.call_id, call.arguments) for call in result.calls]
    return (result.outcome, calls, [(call.name, call.reason) for call in result.rejected])
