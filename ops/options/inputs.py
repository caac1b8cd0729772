"""Reads the inputs of commands: streams, whole responses and lists of calls, from files or standard input.

Decides the dialect where none was given, and whether an input is a stream or a whole response. Stores nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ...stream.decoding.decoder import TurnDecoder
from ...stream.decoding.detect import detect_dialect, is_document
from ...stream.decoding.whole_body import decode_body
from ...stream.dialects.table import spec_of
from ...stream.harness.calls_json import calls_from_json
from ...stream.turns.turn import DIALECTS, CallKind, RejectedCall, ToolCall, TurnResult
from ..errors import Usage
from .durations import whole_number


def read_bytes(path: str | None) -> bytes:
    """The file's bytes, or those of standard input for ``-`` and None.

    Raises:
        Usage: the file cannot be read, or standard input is a terminal.
    """
    from_input = path in (None, "-")
    if from_input and sys.stdin.isatty():
        raise Usage("nothing to read: name a file, or redirect the stream to standard input")
    try:
        return sys.stdin.buffer.read() if from_input else Path(path or "").read_bytes()
    except OSError as error:
        raise Usage(f"{'standard input' if from_input else path}: {error.strerror}") from error


def add_response_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add options for what the bytes of a response may not say."""
    parser.add_argument("--dialect", choices=DIALECTS, help="dialect of the response (default: detected)")
    parser.add_argument(
        "--max-tokens", metavar="N", type=whole_number,
        help="the request's limit of output tokens: a turn that used all of them counts as truncated",
    )  # fmt: skip
    parser.add_argument(
        "--trust-done", action="store_true",
        help="of openai-chat: the server never sends a finish reason, [DONE] ends a turn properly",
    )  # fmt: skip


def turn_of(args: argparse.Namespace, body: bytes) -> TurnResult:
    """The turn in these bytes, read as `add_response_options` asks for it. Raises as `decode`."""
    return decode(body, args.dialect, args.max_tokens, trust_done=args.trust_done)


def decoder_of(body: bytes, dialect: str | None, max_tokens: int | None, *, trust_done: bool) -> TurnDecoder:
    """A decoder for the stream in these bytes. Raises as `decode`."""
    chosen = spec_of(dialect).name if dialect else detect_dialect(body)
    return TurnDecoder(chosen, max_tokens=max_tokens, trust_done=trust_done)


def decode(body: bytes, dialect: str | None, max_tokens: int | None = None, *, trust_done: bool = False) -> TurnResult:
    """Decode the turn in these bytes, a stream or a whole response.

    Raises:
        UnknownDialect: there is no such dialect, or none could be detected.
    """
    chosen = spec_of(dialect).name if dialect else detect_dialect(body)
    if is_document(body):
        return decode_body(body, chosen, max_tokens=max_tokens)
    decoder = decoder_of(body, chosen, max_tokens, trust_done=trust_done)
    decoder.feed(body)
    return decoder.eof()


def calls_of(text: bytes) -> list[ToolCall | RejectedCall]:
    """Parse the calls of --calls: a JSON list of {"name", "arguments", "id"?, "kind"?}.

    Raises:
        Usage: the text has another form.
    """
    try:
        asked = calls_from_json(text.decode())
    except ValueError as error:
        raise Usage(f"--calls: {error}") from error
    out: list[ToolCall | RejectedCall] = []
    for position, call in enumerate(asked):
        if call.rejected:
            out.append(RejectedCall(call.tool, call.call_id, call.rejected, position, str(call.arguments)))
        else:
            out.append(ToolCall(call.tool, call.arguments, call.call_id, _kind(call.kind), position))
    return out


def _kind(word: str) -> CallKind:
    return "custom" if word == "custom" else "function"
