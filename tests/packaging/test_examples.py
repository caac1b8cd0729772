"""The examples in the documents run, and type checkers have nothing to say against them.

A block that a comment names is a whole file (see `test_documents`). Any other is a part of one: what it uses and does
not define stands for the reader's own program, and `STAND_INS` gives it.
"""

from __future__ import annotations

import ast
import builtins
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.processes import Child
from tests.support.processes.type_checkers import complaints
from tests.support.servers.redis_server import RealServer

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "PROTOCOL.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md")),
             *sorted((ROOT / "ops").glob("*.md"))]  # fmt: skip
BEDROCK = """
EVENTS: list[dict[str, Any]] = [
    {"messageStart": {"role": "assistant"}},
    {"contentBlockStart": {
        "start": {"toolUse": {"toolUseId": "tooluse_1", "name": "create_invoice"}}, "contentBlockIndex": 0}},
    {"contentBlockDelta": {
        "delta": {"toolUse": {"input": '{"customer": "Nordwind GmbH", "cents": 1}'}}, "contentBlockIndex": 0}},
    {"contentBlockStop": {"contentBlockIndex": 0}},
    {"messageStop": {"stopReason": "tool_use"}},
    {"metadata": {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}}},
]
bedrock: Any = MagicMock()
bedrock.converse_stream.return_value = {"stream": EVENTS, "ResponseMetadata": {"RequestId": "request-1"}}
"""
STAND_INS = {
    "client": "from toolonce.stream import Client\nclient = Client(scope='acme/conversation-42')",
    "tools": "from toolonce.worker import Registry\ntools = Registry()",
    "messages": "messages: list[Any] = []",
    "model": "model = 'm'",
    "index": "class Index:\n    def search(self, query: str) -> list[str]:\n        return [query]\nindex = Index()",
    "openai_client": "openai_client: Any = MagicMock()",
    "bedrock": BEDROCK,
    "EventStreamError": "EventStreamError: type[Exception] = ValueError",
}


def parts() -> dict[str, str]:
    """The blocks that are parts of a file, each by its document and line, with what it needs before it."""
    found = {}
    for document in DOCUMENTS:
        text = document.read_text("utf-8")
        for block in re.finditer(r"(?<!-->\n)^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, block.start()) + 1
            found[f"{document.stem.lower()}_{line}"] = whole(block[1])
    return found


def whole(code: str) -> str:
    """The code with stand-ins for the names that it uses and does not define."""
    names = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
    defined = {node.id for node in names if isinstance(node.ctx, ast.Store)} | set(dir(builtins))
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                defined.add(name)
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                defined.add(name)
            case ast.alias(name=name, asname=asname):
                defined.add(asname or name)
    needed = dict.fromkeys(node.id for node in names if node.id not in defined)
    before = "\n".join(STAND_INS[name] for name in needed)
    return f"from typing import Any\nfrom unittest.mock import MagicMock\n{before}\n{code}"


PARTS = parts()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder with the README's tools, and a server with a worker for them."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "tools.py").write_bytes((ROOT / "ops/templates/tools.py.txt").read_bytes())
    with RealServer() as server:
        words = ("-m", "toolonce.ops", "work", "--tools", "tools:tools", "--redis", server.url, "--log", "console")
        with Child.python(*words, cwd=folder) as worker:
            worker.wait_for_line("serves default", 40)
            yield folder, server.url


def test_there_are_examples() -> None:
    assert {name.rpartition("_")[0] for name in PARTS} >= {"readme", "bedrock"}


@pytest.mark.parametrize("name", PARTS)
def test_each_part_in_a_document_runs(name: str, place: tuple[Path, str]) -> None:
    folder, url = place
    (folder / f"{name}.py").write_text(PARTS[name], "utf-8")
    run = subprocess.run(
        [sys.executable, f"{name}.py"], cwd=folder, env={**os.environ, "TOOLONCE_REDIS_URL": url},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert run.returncode == 0, f"{PARTS[name]}\n{run.stderr}"


@pytest.mark.slow
def test_type_checkers_accept_each_part(tmp_path: Path) -> None:
    pytest.importorskip("basedpyright", reason="the dependency group `check` is not installed")
    for name, code in PARTS.items():
        (tmp_path / f"{name}.py").write_text(code, "utf-8")

    assert complaints(tmp_path, [f"{name}.py" for name in PARTS]) == ""
