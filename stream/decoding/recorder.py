"""Records a stream to a file as test data, with secrets masked.

Decides the form of a recording: the bytes, and next to them ``<file>.json`` with their end and the decoded result.
Must not know how bytes are decoded.
"""

from __future__ import annotations

import json
import re
from os import PathLike
from pathlib import Path

from ..turns.turn import Dialect, TurnResult

# API keys by their known prefixes, bearer tokens, account ids, and JSON web tokens.
_SECRETS = re.compile(
    rb"\b(?:sk|pk|rk|xai|gsk|hf|ghp|glpat)[-_][A-Za-z0-9_-]{12,}"
    rb"|\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]+|\bAKIA[A-Z0-9]{16}\b"
    rb"|(?i:bearer\s+)[A-Za-z0-9._~+/-]{12,}=*"
    rb"|\b(?:org|proj)[-_][A-Za-z0-9]{16,}"
    rb"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+"
)
_MASK = b"MASKED"


def masked(line: bytes) -> bytes:
    """The line with everything replaced that looks like a secret."""
    return _SECRETS.sub(_MASK, line)


class Recorder:
    """One recording. It masks complete lines, so that a secret that is split over two chunks is found."""

    def __init__(self, path: str | PathLike[str], dialect: Dialect) -> None:
        self._path = Path(path)
        self._dialect = dialect
        self._rest: list[bytes] = []
        self._file = self._path.open("wb")

    def write(self, chunk: bytes) -> None:
        cut = chunk.rfind(b"\n") + 1
        if cut:
            lines = b"".join((*self._rest, chunk[:cut]))
            self._rest = []
            self._file.write(masked(lines))
        if cut < len(chunk):
            self._rest.append(chunk[cut:])

    def close(self, result: TurnResult, *, broken: bool) -> None:
        """Write the rest, and the result in the form of ``tests/data/conformance``."""
        with self._file:
            self._file.write(masked(b"".join(self._rest)))
        answer = {
            "dialect": self._dialect,
            "kind": "stream",
            "end": "cut" if broken else "eof",
            "outcome": result.outcome,
            "calls": [
                {"name": call.name, "call_id": call.call_id, "arguments": call.arguments, "kind": call.kind}
                for call in result.calls
            ],
            "rejected": [
                {"name": call.name, "call_id": call.call_id, "reason": call.reason} for call in result.rejected
            ],
            "text": result.text,
        }
        text = json.dumps(answer, indent=1)
        self._path.with_name(self._path.name + ".json").write_bytes(masked(text.encode()) + b"\n")
