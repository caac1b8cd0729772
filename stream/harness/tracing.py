"""The harness's trace, to be carried in the record to the worker. Costs nothing where OpenTelemetry is not set up."""

from __future__ import annotations

from importlib.util import find_spec

_IS_THERE = find_spec("opentelemetry") is not None and find_spec("opentelemetry.trace") is not None


def traceparent() -> str:
    """The W3C traceparent of the span that is current here; "" for none."""
    if not _IS_THERE:
        return ""
    from opentelemetry.trace import get_current_span

    context = get_current_span().get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"
