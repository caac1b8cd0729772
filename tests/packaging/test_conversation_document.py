"""The examples of docs/conversation.md run as printed, with a local server in the provider's place."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.packaging.test_user_types import basedpyright, mypy
from tests.support.processes.processes import Child
from tests.support.servers.redis_server import RealServer
from tests.support.stream.provider_server import ProviderServer
from tests.support.stream.speech import stream
from tests.support.stream.wire_paths import PATHS

ROOT = Path(__file__).resolve().parents[2]
TOOLS = """
from toolonce.worker import Registry

tools = Registry()


@tools.tool(effect="mutating", approval={approval!r})
def create_invoice(customer: str, cents: int) -> str:
    with open("invoices.log", "a") as ledger:
        ledger.write(f"{{customer}} {{cents}}\\n")
    return "sent"
"""


def examples() -> dict[str, str]:
    text = (ROOT / "docs" / "conversation.md").read_text("utf-8")
    return dict(re.findall(r"<!-- (\w+\.py) -->\n```python\n(.*?)```", text, re.DOTALL))


@dataclass
class ExamplesPlace:
    """Where an example runs."""

    folder: Path
    provider: ProviderServer
    environment: dict[str, str]

    def run(self, name: str) -> str:
        done = subprocess.run(
            [sys.executable, name],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def place(tmp_path: Path, redis_server: RealServer, namespace: str) -> Iterator[ExamplesPlace]:
    with ProviderServer() as server:
        yield ExamplesPlace(tmp_path, server, {"TOOLONCE_REDIS_URL": redis_server.url, "TOOLONCE_NAMESPACE": namespace})


@pytest.mark.parametrize(
    ("name", "approval", "said"),
    [
        ("talk.py", "always", "answered Sent."),
        ("talk_async.py", "never", "create_invoice succeeded \nanswered Sent."),
    ],
)
def test_an_example_of_the_loop_runs_as_printed_and_a_repeat_asks_nothing(
    place: ExamplesPlace, name: str, approval: str, said: str
) -> None:
    provider = place.provider
    code = examples()[name].replace("https://api.anthropic.com/v1/messages", provider.url + PATHS["anthropic"])
    (place.folder / name).write_text(code, "utf-8")
    (place.folder / "invoice_tools.py").write_text(TOOLS.format(approval=approval), "utf-8")
    order = [("create_invoice", "c1", {"customer": "Nordwind GmbH", "cents": 129900})]
    provider.script.extend([stream("anthropic", "t1", order), stream("anthropic", "t2", (), "Sent.")])

    work = ["-m", "toolonce.ops", "work", "--tools", "invoice_tools:tools"]
    with Child.python(*work, cwd=place.folder, env=place.environment) as worker:
        worker.wait_for_line("serves")
        first, again = place.run(name), place.run(name)

    assert said in first
    assert "answered Sent." in again
    assert (len(provider.requests), provider.refusals) == (2, [])
    assert "system" in provider.requests[0][1]
    assert (place.folder / "invoices.log").read_text() == "Nordwind GmbH 129900\n"


@pytest.mark.parametrize("name", sorted(examples()))
def test_an_example_of_the_loop_has_no_type_errors(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(examples()[name], "utf-8")
    assert mypy(file) == basedpyright(file) == set()
