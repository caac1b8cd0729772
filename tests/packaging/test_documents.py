"""The documents say what the code does: generated parts are fresh, examples run as printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.ops.commands.run.init import SOURCES
from toolonce.store.schema.validation import validate
from toolonce.stream import TurnDecoder
from toolonce.stream.dialects.table import spec_of
from toolonce.worker.tools.loading import load_registry

ROOT = Path(__file__).resolve().parents[2]
RESPONSE = ROOT / "ops" / SOURCES["turn.sse"]


def blocks() -> dict[str, str]:
    text = (ROOT / "README.md").read_text("utf-8")
    return dict(re.findall(r"<!-- (\w+\.py) -->\n```python\n(.*?)```", text, re.DOTALL))


def test_what_the_code_decides_is_written_in_the_architecture_as_it_stands() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/write_docs.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "path", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("ops/*.md")]), ids=lambda p: p.name
)
def test_each_link_of_a_document_leads_to_a_file(path: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text("utf-8"))

    assert [link for link in links if not (path.parent / link).exists()] == []


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
    (tmp_path / "turn.sse").write_bytes(RESPONSE.read_bytes())
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

    assert "create_invoice succeeded {'customer': 'Nordwind GmbH', 'cents': 129900}" in again.stdout, again.stderr
    assert "function_call_output" in again.stdout
    assert len((tmp_path / "invoices.log").read_text().splitlines()) == 1, "effects = 1"


def test_the_examples_of_the_readme_are_the_files_that_init_writes() -> None:
    templates = {name: (ROOT / "ops" / "templates" / f"{name}.txt").read_text("utf-8") for name in blocks()}

    assert blocks() == templates
    assert set(templates) == {"tools.py", "harness.py"}


def test_the_response_that_init_writes_fits_tool_and_harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """faults 30: sample, dialect and tool have to agree."""
    dialect = RESPONSE.name.split(".")[1]
    assert f'TurnDecoder("{dialect}")' in blocks()["harness.py"]
    (tmp_path / "readme_tools.py").write_text(blocks()["tools.py"], "utf-8")
    monkeypatch.chdir(tmp_path)
    decoder = TurnDecoder(spec_of(dialect).name)
    decoder.feed(RESPONSE.read_bytes())

    calls = decoder.eof().require_calls()

    tools = {tool.name: tool for tool in load_registry("readme_tools:tools")}
    assert calls
    for call in calls:
        assert isinstance(call.arguments, dict)
        assert validate(tools[call.name].spec.schema, call.arguments) is None
