"""What decoders log: turns that ended badly. Never arguments or text.

Each line carries its facts as fields (`extra`), so that handlers may count them;
`toolonce.ops.metrics.harness_metrics` does.
"""

from __future__ import annotations

import logging

from .turn import TurnResult

_LOG = logging.getLogger("toolonce.stream")
_GOOD = ("completed", "paused")


def log_turn(result: TurnResult) -> TurnResult:
    """Log a turn that ended badly: it gives no calls, and the provider bills it all the same."""
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
    """The provider's words, of which none can end the line or act on a terminal, whatever formatter writes it."""
    return "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in text)
