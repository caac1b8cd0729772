"""The deployment files, run or verified by the tools they are for."""

from __future__ import annotations

import configparser
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.processes.processes import Child
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.ops.cli import build_parser
from toolonce.ops.options.durations import seconds
from toolonce.store.model.specs import ToolSpec

OPS = Path(__file__).parents[3] / "ops"
CONFIG = OPS / "deploy" / "supervisord.conf"
APP = """
import time
from pathlib import Path
from toolonce.worker.tools.registry import Registry
tools = Registry()
HERE = Path(__file__).parent

@tools.tool(timeout=20)
def slow(name: str) -> str:
    (HERE / name).touch()
    while not (HERE / "go").exists():
        time.sleep(0.01)
    return "finished"
"""


@dataclass(frozen=True)
class Supervised:
    """A running supervisord with its programs, and the folder of the tools."""

    app: Path
    environment: dict[str, str]
    daemon: Child

    def control(self, *words: str) -> str:
        """supervisorctl."""
        command = [sys.executable, "-m", "supervisor.supervisorctl", "-c", str(CONFIG), *words]
        environment = {**os.environ, **self.environment}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        return ran.stdout

    def pid(self, program: str) -> int:
        """Of the running program; 0 where it does not run."""
        line = self.control("status", program)
        return int(line.partition("pid ")[2].partition(",")[0]) if "RUNNING" in line else 0


@pytest.fixture
def supervised(tmp_path: Path, redis_server: RealServer, namespace: str) -> Iterator[Supervised]:
    (tmp_path / "app.py").write_text(APP)
    environment = {
        "TOOLONCE_RUN": str(redis_server.folder),
        "TOOLONCE_APP": str(tmp_path),
        "TOOLONCE_TOOLS": "app:tools",
        "TOOLONCE_REDIS_URL": redis_server.url,
        "TOOLONCE_NAMESPACE": namespace,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    with Child.python("-W", "ignore", "-m", "supervisor.supervisord", "-c", str(CONFIG), env=environment) as daemon:
        yield Supervised(tmp_path, environment, daemon)
        daemon.signal(signal.SIGTERM)
        daemon.wait(60)


@pytest.mark.slow
def test_supervisor_starts_restarts_and_drains_a_worker(supervised: Supervised, toolonce: CommandLine) -> None:
    wait_until(lambda: supervised.pid("worker") and supervised.pid("consumer"), 40, "both programs run")
    first = supervised.pid("worker")
    os.kill(first, signal.SIGKILL)
    second = wait_until(lambda: (now := supervised.pid("worker")) != first and now, 40, "it is started again")

    wait_until(lambda: second in _live(toolonce), 40, "the new one has told of itself")
    _submit(supervised, toolonce)
    wait_until(lambda: (supervised.app / "entered").exists(), 20, "the handler is entered")
    with ThreadPoolExecutor(1) as aside:
        stopping = aside.submit(supervised.control, "stop", "worker")
        supervised.daemon.wait_for_line("draining: 1")
        (supervised.app / "go").touch()

        assert stopping.result(60) == "worker: stopped\n"
    (call,) = toolonce("calls", "--json").json["calls"]
    assert call["state"] == "succeeded"


def _live(toolonce: CommandLine) -> list[int]:
    return [row["pid"] for row in toolonce("workers", "--json").json["workers"]]


def _submit(supervised: Supervised, toolonce: CommandLine) -> None:
    path = supervised.app / "calls.json"
    path.write_text(json.dumps([{"name": "slow", "arguments": {"name": "entered"}}]))
    said = toolonce("submit", "--scope", "s", "--turn-id", "t", "--calls", str(path), "--wait", "0")
    assert said.code == 0, said.err


def programs() -> dict[str, configparser.SectionProxy]:
    parser = configparser.RawConfigParser(inline_comment_prefixes=(";",))
    parser.read(CONFIG)
    return {name.partition(":")[2]: parser[name] for name in parser.sections() if name.startswith("program:")}


@pytest.mark.parametrize("name", programs())
def test_each_program_is_a_command_that_exists_with_these_options(name: str) -> None:
    words = programs()[name]["command"].replace("%(ENV_TOOLONCE_TOOLS)s", "app:tools").split()

    args = build_parser().parse_args(words[1:])

    assert words[0] == "toolonce"
    assert callable(args.run)


def test_supervisor_waits_longer_than_the_workers_own_grace() -> None:
    worker = programs()["worker"]
    grace = seconds(worker["command"].partition("--grace ")[2].split()[0])

    assert float(worker["stopwaitsecs"]) > grace > ToolSpec("any").timeout_ms / 1000
    assert worker["stopsignal"] == "TERM"


@pytest.mark.parametrize("unit", sorted(path.name for path in (OPS / "deploy" / "systemd").iterdir()))
def test_systemd_accepts_the_units(unit: str, tmp_path: Path) -> None:
    verifier = shutil.which("systemd-analyze")
    if verifier is None:
        pytest.skip("systemd-analyze is not installed")
    text = (OPS / "deploy" / "systemd" / unit).read_text().replace("/srv/toolonce/venv/bin/toolonce", "/bin/true")
    (tmp_path / unit).write_text(text)
    command = [verifier, "verify", "--man=no", str(tmp_path / unit)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert ran.stderr == ""
    assert ran.returncode == 0


@pytest.mark.parametrize("unit", sorted(path.name for path in (OPS / "deploy" / "systemd").iterdir()))
def test_each_unit_starts_a_command_that_exists_and_may_drain(unit: str) -> None:
    lines = (OPS / "deploy" / "systemd" / unit).read_text().splitlines()
    given = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    words = given["ExecStart"].replace("${TOOLONCE_TOOLS}", "app:tools").split()

    args = build_parser().parse_args(words[1:])

    assert callable(args.run)
    assert float(given["TimeoutStopSec"]) > getattr(args, "grace", 0)
    assert getattr(args, "grace", math.inf) > ToolSpec("any").timeout_ms / 1000
    assert given["KillMode"] == "mixed"
