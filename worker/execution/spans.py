"""Spans of OpenTelemetry around handlers, for installations that set it up; costs nothing for all others.

Decides names and attributes. The application decides the provider and where spans go.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from ...store.operations.runs import Run
from ..tools.handler_result import End

_CAN_TRACE = find_spec("opentelemetry") is not None and find_spec("opentelemetry.trace") is not None
if _CAN_TRACE:
    from opentelemetry import trace
    from opentelemetry.trace import Status, StatusCode
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator


class HandlerSpan:
    """An `execute_tool` span around the handler (OpenTelemetry's conventions for GenAI), child of the harness's own.

    Nothing happens where OpenTelemetry is not installed, or no provider was set up in this process.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._span: Any = None
        self._scope: Any = None

    def __enter__(self) -> HandlerSpan:
        if _CAN_TRACE:
            self._start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._scope:
            self._scope.__exit__(None, None, None)

    def ended(self, end: End) -> End:
        """Note how it ended; an attempt that gave no value is an error of the span."""
        if self._span:
            self._span.set_attribute("toolonce.end", str(end.kind))
            if end.code:
                self._span.set_attribute("error.type", end.code)
                self._span.set_status(Status(StatusCode.ERROR))
        return end

    def _start(self) -> None:
        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            return
        run = self._run
        parent = TraceContextTextMapPropagator().extract({"traceparent": run.trace}) if run.trace else None
        known = {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": run.tool, "gen_ai.tool.type": run.kind,
            "gen_ai.tool.call.id": run.call_id, "toolonce.call": run.call, "toolonce.fence": run.fence,
            "toolonce.attempt": run.attempt, "toolonce.effect": str(run.effect),
        }  # fmt: skip
        self._scope = trace.get_tracer("toolonce.worker").start_as_current_span(
            f"execute_tool {run.tool}",
            context=parent,
            attributes={name: value for name, value in known.items() if value is not None},
        )
        self._span = self._scope.__enter__()
