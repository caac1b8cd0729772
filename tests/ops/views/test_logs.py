"""Logs and spans: whose call it was, and never what was in it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes.processes import Child
from tests.support.servers.redis_server import RealServer
from toolonce.ops.views.logs import ConsoleLines, JsonLines
from toolonce.store.model.specs import Effect
from toolonce.store.operations.runs import Run
from toolonce.worker.execution.log_context import working_on

RUN = Run(
    call="ab" * 16, fence=7, token="t", worker="w", tool="pay", version="1", kind="function",
    arguments='{"card": "4111"}', idempotency_key="k", scope="s", tenant="s", turn_id="turn-1", call_id="c", position=0,
    effect=Effect.MUTATING, begins=False, attempt=2, attempt_limit=5, deadline_at=None, secret=False,
    cancel_requested=False,
)  # fmt: skip


def record(message: str = "it broke", **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("toolonce.worker", logging.WARNING, __file__, 1, message, (), None)
    made.__dict__.update(extra)
    return made


def test_a_line_written_inside_a_run_names_call_turn_tool_and_fence() -> None:
    with working_on(RUN):
        line = json.loads(JsonLines().format(record()))
    outside = json.loads(JsonLines().format(record()))

    assert (line["call"], line["turn"], line["tool"], line["fence"], line["attempt"]) == (
        RUN.call, "turn-1", "pay", 7, 2,
    )  # fmt: skip
    assert (line["message"], line["level"]) == ("it broke", "warning")
    assert "call" not in outside


@pytest.mark.parametrize("form", [JsonLines(), ConsoleLines()])
def test_fields_that_nobody_has_named_stay_out_of_the_logs(form: logging.Formatter) -> None:
    with working_on(RUN):
        line = form.format(record(arguments={"card": "4111"}, value="4111"))

    assert "4111" not in line


TRACED = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, ConsoleSpanExporter
provider = TracerProvider()
exporter = ConsoleSpanExporter(sys.stdout, formatter=lambda span: span.to_json(None) + "\\n")
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
from toolonce.worker.tools.registry import Registry
from toolonce.worker.tools.errors import ToolError
tools = Registry()

@tools.tool
def pay(cents: int) -> int:
    if cents < 0:
        raise ToolError("no")
    return cents
"""
HARNESS = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider())
from toolonce.stream.harness.client import Client
from toolonce.stream.turns.turn import ToolCall
client = Client(sys.argv[1], scope="s", namespace=sys.argv[2])
with client, trace.get_tracer("harness").start_as_current_span("agent") as span:
    calls = [ToolCall("pay", {"cents": cents}, f"call-{cents}", "function", n) for n, cents in enumerate((5, -5))]
    client.submit_calls(calls, turn_id="t").wait(30)
    print(format(span.get_span_context().trace_id, "032x"))
"""


def test_a_span_of_the_worker_continues_the_harness_own_trace(
    redis_server: RealServer, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(TRACED)
    place = ("--redis", redis_server.url, "--namespace", namespace)
    with Child.python("-m", "toolonce.ops", "work", "--tools", "app:tools", *place, cwd=tmp_path) as worker:
        worker.wait_for_line("serves default")
        command = [sys.executable, "-c", HARNESS, redis_server.url, namespace]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        worker.wait_for_line("call--5")
        worker.terminate()

    spans = [json.loads(line) for line in worker.lines if line.startswith("{") and "execute_tool" in line]
    by_id = {span["attributes"]["gen_ai.tool.call.id"]: span for span in spans}
    assert {span["name"] for span in spans} == {"execute_tool pay"}
    assert {span["context"]["trace_id"] for span in spans} == {f"0x{ran.stdout.strip()}"}
    assert by_id["call-5"]["status"]["status_code"] == "UNSET"
    assert by_id["call--5"]["attributes"]["error.type"] == "tool_error"
    assert "cents" not in json.dumps(spans)


LIBRARY_USE = """
import logging
from toolonce.stream import TurnDecoder
decoder = TurnDecoder("anthropic")
decoder.feed(b"data: {}\\n\\n")
assert decoder.abort("reset").outcome == "aborted"
import toolonce.worker
for name in ("toolonce.worker", "toolonce.inbox", "toolonce.tool.pay"):
    logging.getLogger(name).warning("something is wrong")
"""


def test_a_program_without_logging_finds_none_of_our_warnings_on_its_stderr() -> None:
    """Faults 31: Python prints what no handler takes."""
    said = subprocess.run([sys.executable, "-c", LIBRARY_USE], capture_output=True, text=True, check=False)

    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")
