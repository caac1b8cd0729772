"""The documents say what the code does: generated parts are fresh, examples run as printed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.store.validation import validate
from toolonce.stream import TurnDecoder
from toolonce.worker.loading import load_registry

ROOT = Path(__file__).resolve().parents[2]


def blocks() -> dict[str, str]:
    text = (ROOT / "README.md").read_text("utf-8")
    return dict(re.findall(r"<!-- (\w+\.py) -->\n```python\n(.*?)```", text, re.DOTALL))


def test_what_the_code_decides_is_written_in_the_architecture_as_it_stands() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/write_docs.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr


@pytest.fixture
def server() -> Iterator[RealServer]:
    """One of its own: the examples live in the default namespace, where other tests may have left their marks."""
    with RealServer() as server:
        yield server


def test_the_examples_of_the_readme_run_as_printed_and_a_repeat_is_answered_from_the_store(
    tmp_path: Path, server: RealServer
) -> None:
    for name, code in blocks().items():
        (tmp_path / name).write_text(code, "utf-8")
    (tmp_path / "turn.sse").write_text(INVOICE_TURN, "utf-8")
    environment = {**os.environ, "TOOLONCE_REDIS_URL": server.url}
    command = Path(sys.executable).with_name("toolonce")
    worker = subprocess.Popen(
        [command, "work", "--tools", "tools:tools", "--concurrency", "2"], cwd=tmp_path, env=environment
    )

    def run_harness() -> subprocess.CompletedProcess[str]:
        code = [sys.executable, "harness.py"]
        return subprocess.run(code, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    try:
        wait_until(
            lambda: run_harness().returncode == 0,
            timeout=30,
            description="the harness example runs once the worker has published its tools",
        )
        again = run_harness()
    finally:
        worker.terminate()
        worker.wait(timeout=30)

    assert "create_invoice succeeded {'customer': 'acme', 'cents': 4250}" in again.stdout, again.stderr
    assert "tool_result" in again.stdout
    assert len((tmp_path / "invoices.log").read_text().splitlines()) == 1, "effects = 1"


FRAMES: tuple[dict[str, object], ...] = (
    {"type": "message_start", "message": {"id": "msg_readme", "type": "message", "role": "assistant", "content": []}},
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "toolu_1", "name": "create_invoice", "input": {}},
    },
    *(
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}
        for piece in ('{"customer":"acme","cents":42', "50}")
    ),
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
)
INVOICE_TURN = "".join(f"event: {frame['type']}\ndata: {json.dumps(frame)}\n\n" for frame in FRAMES)


def test_the_stream_that_the_readme_offers_fits_its_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (offered,) = re.findall(r"`cp (ops/transcripts/(\S+)\.sse) turn\.sse`", (ROOT / "README.md").read_text("utf-8"))
    (tmp_path / "readme_tools.py").write_text(blocks()["tools.py"], "utf-8")
    monkeypatch.chdir(tmp_path)
    decoder = TurnDecoder(offered[1].partition(".")[2])
    decoder.feed((ROOT / offered[0]).read_bytes())

    calls = decoder.eof().require_calls()

    tools = {tool.name: tool for tool in load_registry("readme_tools:tools")}
    assert calls
    for call in calls:
        assert isinstance(call.arguments, dict)
        assert validate(tools[call.name].spec.schema, call.arguments) is None
