"""`toolonce decode`: shows the turn in a stream or response. Executes nothing and needs no store."""

from __future__ import annotations

import argparse
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from ....stream.decoding.decoder import TurnDecoder
from ....stream.turns.drafts import ArgumentsDraft, Draft
from ....stream.turns.turn import RejectedCall
from ...options.inputs import add_response_options, decoder_of, read_bytes, turn_of
from ...options.parser import add_json, command
from ...views import render

if TYPE_CHECKING:
    from ....stream.turns.turn import ToolCall, TurnResult
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce decode turn.sse
toolonce decode --dialect openai-chat --json < turn.sse
toolonce decode --drafts turn.sse
"""
PIECE = 256
"""Bytes per feed with --drafts: small enough to show a turn grow, large enough to read."""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers, "decode", "Show the turn in a stream or response; executes nothing", examples=EXAMPLES, store=False
    )
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="the response, streamed or whole (default: standard input)"
    )
    add_response_options(parser)
    parser.add_argument(
        "--drafts", action="store_true", help="also print the drafts that a UI would show, one per line"
    )
    add_json(
        parser,
        "{outcome, calls: [{name, arguments, call_id, kind, position, ...}], rejected, text, turn_id, stop, error, "
        "usage, truncated, ...}",
    )


def run(args: argparse.Namespace) -> int:
    body = read_bytes(args.file)
    if args.drafts:
        _show_drafts(body, decoder_of(body, args.dialect, args.max_tokens, trust_done=args.trust_done))
    result = turn_of(args, body)
    if args.json:
        render.show_json(as_json(result))
    else:
        _show(result)
    return 0 if result.outcome == "completed" else 1


def as_json(result: TurnResult) -> dict[str, Any]:
    """A result as JSON: every field, and ``truncated``."""
    shown = {field.name: getattr(result, field.name) for field in fields(result)}
    shown["calls"] = [asdict(call) for call in result.calls]
    shown["rejected"] = [asdict(call) for call in result.rejected]
    shown["error"] = asdict(result.error) if result.error else None
    return {**shown, "truncated": result.truncated}


def _show(result: TurnResult) -> None:
    error = result.error
    pairs = {
        "dialect": result.dialect,
        "outcome": result.outcome,
        "reason": result.diagnostics[0] if result.diagnostics else None,
        "turn id": result.turn_id,
        "stop": result.stop,
        "error": " ".join(str(part) for part in (error.code, error.status, error.message) if part) if error else None,
        "text": result.text,
        "seen": f"{result.bytes_seen} bytes, {result.tokens_seen or 'unknown'} output tokens",
    }
    render.show_pairs({name: value for name, value in pairs.items() if value})
    everyone: list[ToolCall | RejectedCall] = [*result.calls, *result.rejected]
    everyone.sort(key=lambda call: call.position)
    if everyone:
        render.show_table(("#", "call", "id", "arguments", ""), map(_row, everyone))


def _row(call: ToolCall | RejectedCall) -> tuple[object, ...]:
    if isinstance(call, RejectedCall):
        return call.position, call.name, call.call_id, call.raw, f"refused: {call.reason}"
    text = call.arguments if isinstance(call.arguments, str) else render.json_line(call.arguments)
    return call.position, call.name, call.call_id, text, ""


def _show_drafts(body: bytes, decoder: TurnDecoder) -> None:
    for at in range(0, len(body), PIECE):
        for draft in decoder.feed(body[at : at + PIECE]):
            render.say(_line(draft))
    decoder.eof()
    for draft in decoder.closing_drafts():
        render.say(_line(draft))


def _line(draft: Draft) -> str:
    if isinstance(draft, ArgumentsDraft):
        shown: dict[str, object] = {"call": draft.call, "fragment": draft.fragment, "so_far": draft.value}
    else:
        shown = asdict(draft)
    return f"{type(draft).__name__} {render.json_line(shown)}"
