"""The first hour of a user, from the wheel, in a clean environment, outside the checkout, with no variable set."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.processes.processes import Child
from tests.support.wait import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TOOLS = ("--tools", "tools:tools")
INVOICE = "create_invoice succeeded {'customer': 'Nordwind GmbH', 'cents': 129900}"


class UserShell:
    """A shell of the user, in one folder."""

    def __init__(self, programs: Path, home: Path, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._programs = programs
        self._env = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(home), "XDG_DATA_HOME": str(home / "data")}

    def __call__(self, program: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command, env = [str(self._programs / program), *words], self._env | variables
        return subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False)

    def up(self, *words: str) -> Child:
        """`toolonce up`, beside."""
        unset = {name: "" for name in os.environ if name.startswith("TOOLONCE_") or name == "PYTHONPATH"}
        command = [str(self._programs / "toolonce"), "up", *words, "--log", "console"]
        return Child(*command, env={**unset, **self._env}, cwd=self.folder)

    @property
    def effects(self) -> int:
        """Lines in the ledger of the tool."""
        return len((self.folder / "invoices.log").read_text().splitlines())


def test_init_up_and_harness_work_as_written_in_two_projects_that_share_nothing(
    installed: Path, tmp_path: Path
) -> None:
    one, two = (UserShell(installed, tmp_path / "home", tmp_path / name) for name in ("one", "two"))
    for shell in (one, two):
        said = shell("toolonce", "init")
        assert said.stdout == "toolonce up --tools tools:tools\npython harness.py\n", said.stderr

    with one.up(*TOOLS) as first, two.up(*TOOLS) as second:
        for shell, up in ((one, first), (two, second)):
            up.wait_for_line("serves default", 60)
            assert shell("python", "harness.py").stdout.startswith(INVOICE)
            again = shell("python", "harness.py").stdout
            assert again.startswith(f"{INVOICE} (replayed)")
            assert "function_call_output" in again
            assert shell.effects == 1, "effects = 1"
            (call,) = json.loads(shell("toolonce", "calls", "--json").stdout)["calls"]
            assert call["state"] == "succeeded"
        urls = {shell("toolonce", "url").stdout for shell in (one, two)}
        assert len(urls) == 2
        assert first.terminate() == second.terminate() == 0


def test_where_no_store_is_or_runs_harness_and_commands_say_so_alike(installed: Path, tmp_path: Path) -> None:
    shell, empty = (UserShell(installed, tmp_path / "home", tmp_path / name) for name in ("one", "empty"))
    shell("toolonce", "init")
    (empty.folder / "harness.py").write_bytes((shell.folder / "harness.py").read_bytes())
    (empty.folder / "turn.sse").write_bytes((shell.folder / "turn.sse").read_bytes())

    no_store = r"no store here: .*start one with `toolonce up --tools tools:tools`"
    assert re.search(no_store, shell("python", "harness.py").stderr)
    assert re.search(no_store, shell("toolonce", "calls").stderr)

    with shell.up(*TOOLS) as up:
        up.wait_for_line("serves default", 60)
        wait_until(lambda: shell("python", "harness.py").returncode == 0, 60, "the harness runs")
        elsewhere = rf"the nearest is {shell.folder}/\.toolonce, for programs in {shell.folder}; .*`toolonce init`"
        assert re.search(elsewhere, empty("python", "harness.py").stderr)
        assert re.search(elsewhere, empty("toolonce", "calls").stderr)
        assert up.terminate() == 0

    not_running = r"is not running; start it with `toolonce up --tools tools:tools`"
    assert re.search(not_running, shell("python", "harness.py").stderr)
    assert re.search(not_running, shell("toolonce", "calls").stderr)


def test_what_else_ends_a_first_hour_names_the_cause_and_the_next_command(installed: Path, tmp_path: Path) -> None:
    shell = UserShell(installed, tmp_path / "home", tmp_path / "one")
    shell("toolonce", "init")
    harness = (shell.folder / "harness.py").read_text()
    (shell.folder / "other.py").write_text(
        harness.replace('TurnDecoder("openai-responses")', 'TurnDecoder("anthropic")')
    )
    (shell.folder / "brief.py").write_text(harness.replace("timeout=30", "timeout=0.1").replace("-42", "-43"))

    no_redis = shell("python", "harness.py", TOOLONCE_REDIS_URL="redis://localhost:1").stderr
    assert "Connection refused" in no_redis
    assert "`toolonce up` runs one for this project" in no_redis
    with shell.up(*TOOLS) as up:
        up.wait_for_line("serves default", 60)
        assert "give that in its place" in shell("python", "other.py").stderr
        elsewhere = shell("python", "harness.py", TOOLONCE_NAMESPACE="other").stderr
        assert re.search("no worker has published any tool in namespace other at .*; start one there", elsewhere)
        assert up.terminate() == 0
    with shell.up() as up:
        up.wait_for_line("calls wait", 60)
        no_worker = shell("python", "brief.py").stdout
        assert no_worker.startswith("create_invoice queued None")
        assert "`toolonce doctor` says what is missing" in no_worker
        assert "no worker lives [no_worker]" in shell("toolonce", "doctor").stdout
        assert up.terminate() == 0
    assert "toolonce init" in shell("toolonce", "up", "--tools", "app:tools").stderr
