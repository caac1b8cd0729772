"""The log lines of decoders: turns that ended badly. Never logs arguments or text.

Each line carries its facts as fields (`extra`), so that handlers can count them;
`toolonce.ops.metrics.harness_metrics` does.
"""

from __future__ import annotations

import logging

from .turn import TurnResult

_LOG = logging.getLogger("toolonce.stream")
_GOOD = ("completed", "paused")


def log_turn(result: TurnResult) -> TurnResult:
    """Log a turn that ended badly: it has no calls, although the provider bills it."""
    if result.outcome not in _GOOD:
        reason = result.diagnostics[0] if result.diagnostics else (result.stop or "no reason given")
        facts = {
            "event": "turn_ended_badly", "dialect": result.dialect, "state": result.outcome, "turn": result.turn_id,
            "reason": reason, "bytes": result.bytes_seen, "tokens": result.tokens_seen,
        }  # fmt: skip
        turn = result.turn_id and _on_one_line(result.turn_id)
        _LOG.warning("%s turn %s %s: %s", result.dialect, turn, result.outcome, _on_one_line(reason), extra=facts)
    return result


def _on_one_line(text: str) -> str:
    """The text with control characters escaped, so that it can neither end the line nor control a terminal."""
    return "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in text)
