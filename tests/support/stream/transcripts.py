"""Recorded streams and their right answers, and the ways to cut bytes into pieces."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolonce.stream.decoding.decoder import TurnDecoder
from toolonce.stream.decoding.whole_body import decode_body
from toolonce.stream.dialects.table import spec_of
from toolonce.stream.turns.turn import DIALECTS, Dialect, TurnResult

ROOT = Path(__file__).resolve().parents[3]
CONFORMANCE = ROOT / "tests" / "data" / "conformance"
RECORDINGS = Path(os.environ.get("TOOLONCE_RECORDINGS") or ROOT.parent / "shared" / "recordings")
MORE_RECORDINGS = RECORDINGS.with_name(f"{RECORDINGS.name}-2")


@dataclass(frozen=True)
class RecordedStream:
    """One stream or body with its right answer, in the words of the conformance README."""

    key: str
    data: bytes
    kind: str
    end: str
    answer: dict[str, Any]
    options: dict[str, Any]

    @property
    def dialect(self) -> Dialect:
        return spec_of(self.key.split("/")[0]).name


def transcripts(folder: Path) -> list[RecordedStream]:
    """Every transcript of a folder that has an ``expected.json``; none where there is no folder."""
    return [_transcript(folder, key, want) for key, want in _expected(folder).items() if key.split("/")[0] in DIALECTS]


def unread(folder: Path) -> list[str]:
    """The transcripts of dialects that are not decoded here."""
    return [key for key in _expected(folder) if key.split("/")[0] not in DIALECTS]


def _expected(folder: Path) -> dict[str, Any]:
    path = folder / "expected.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


def _transcript(folder: Path, key: str, want: dict[str, Any]) -> RecordedStream:
    kind = want.get("kind", "stream")
    usual = f"{key}{'.json' if kind == 'body' else '.sse'}"
    data = (folder / want.get("file", usual)).read_bytes()
    answer = {name: want[name] for name in ("outcome", "calls", "rejected", "text")}
    return RecordedStream(key, data, kind, want.get("end", "eof"), answer, want.get("options", {}))


def decode(transcript: RecordedStream, pieces: Iterable[bytes] | None = None) -> TurnResult:
    """The result for a transcript, fed in these pieces (default: as one)."""
    if transcript.kind == "body":
        return decode_body(transcript.data, transcript.dialect)
    decoder = TurnDecoder(transcript.dialect, **transcript.options)
    for piece in pieces if pieces is not None else [transcript.data]:
        decoder.feed(piece)
    return decoder.eof() if transcript.end == "eof" else decoder.abort()


def answer(result: TurnResult) -> dict[str, Any]:
    """A result in the words of the conformance README."""
    return {
        "outcome": result.outcome,
        "calls": [
            {"name": call.name, "call_id": call.call_id, "arguments": call.arguments, "kind": call.kind}
            for call in result.calls
        ],
        "rejected": [{"name": r.name, "call_id": r.call_id, "reason": r.reason} for r in result.rejected],
        "text": result.text,
    }


def exact(value: object) -> str:
    """A text that tells 3 from 3.0 and True from 1, so that two values can be compared exactly."""
    return json.dumps(value, sort_keys=True, indent=1)


def single_bytes(data: bytes) -> Iterator[bytes]:
    return (data[at : at + 1] for at in range(len(data)))


def random_pieces(data: bytes, seed: str) -> Iterator[bytes]:
    chance = random.Random(seed)
    at = 0
    while at < len(data):
        size = chance.choice((1, 2, 3, 7, 40, 300))
        yield data[at : at + size]
        at += size
