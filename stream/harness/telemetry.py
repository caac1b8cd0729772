"""What a submission tells the outside: log lines for replayed calls and conflicts, and the trace that calls carry on.

Never logs arguments or values. Each line carries its facts as fields (`extra`), so that handlers can count them;
`toolonce.ops.metrics.harness_metrics` does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from importlib.util import find_spec

from ...store.model.outcomes import Outcome
from ...store.model.plain import visible

_LOG = logging.getLogger("toolonce.stream")
_HAS_OPENTELEMETRY = find_spec("opentelemetry") is not None and find_spec("opentelemetry.trace") is not None


def log_answers(scope: str, turn_id: str, outcomes: Iterable[Outcome]) -> None:
    """Log which calls of a submission were answered from the store, and which conflict with a stored call."""
    for outcome in outcomes:
        if not outcome.replayed and not outcome.conflict:
            continue
        event = "conflict" if outcome.conflict else "replay"
        level = logging.WARNING if outcome.conflict else logging.INFO
        if not _LOG.isEnabledFor(level):
            continue
        facts = {"event": event, "call": outcome.key, "tool": outcome.tool, "scope": scope, "turn": turn_id}
        _LOG.log(level, "%s of call %s (%s)", event, outcome.key, visible(outcome.tool), extra=facts)


def traceparent() -> str:
    """The W3C traceparent of the current OpenTelemetry span; "" where there is none."""
    if not _HAS_OPENTELEMETRY:
        return ""
    from opentelemetry.trace import get_current_span

    context = get_current_span().get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"
