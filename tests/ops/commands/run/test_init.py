"""`toolonce init`: what it writes runs as it is, keeps what is there, and gives the folder a store of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.processes.type_checkers import complaints
from toolonce.ops.commands.run.init import SOURCES
from toolonce.store.connections.project import FOLDER, find_project


@pytest.fixture(autouse=True)
def _nothing_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLONCE_REDIS_URL", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))


def test_it_writes_a_project_and_the_next_two_commands(
    tmp_path: Path, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    said = toolonce("init", "new/one", place=[])

    assert said.code == 0
    names = "tools.py, harness.py, turn.sse, test_tools.py"
    assert f"wrote {names} in {tmp_path / 'new/one'}; its store: {tmp_path / 'new/one' / FOLDER}" in said.err
    assert said.out.splitlines() == [
        "cd new/one && toolonce up --tools tools:tools",
        "cd new/one && python harness.py",
    ]
    assert set(os.listdir("new/one")) == {*SOURCES, FOLDER}
    assert (tmp_path / "new/one" / FOLDER / ".gitignore").read_text() == "*\n"


def test_it_overwrites_nothing_and_says_what_it_kept(
    tmp_path: Path, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.py").write_text("mine")
    (tmp_path / "harness.py").symlink_to(tmp_path / "elsewhere.py")

    first, second = toolonce("init", place=[]), toolonce("init", place=[])

    assert (tmp_path / "tools.py").read_text() == "mine"
    assert not (tmp_path / "elsewhere.py").exists()
    assert "kept tools.py as it was" in first.err
    assert "kept harness.py as it was" in first.err
    assert "nothing to write" in second.err
    assert first.out == second.out == "toolonce up --tools tools:tools\npython harness.py\n"


@pytest.mark.parametrize("above", [FOLDER, "pyproject.toml", ".git"])
def test_its_store_is_that_of_the_project_around_it_and_never_one_that_others_share(
    tmp_path: Path, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch, above: str
) -> None:
    inner = tmp_path / "around" / "inner"
    inner.mkdir(parents=True)
    around = inner.parent / above
    around.write_text("") if above == "pyproject.toml" else around.mkdir()
    monkeypatch.chdir(inner)

    toolonce("init", place=[])

    own = inner.parent if above == "pyproject.toml" else inner
    assert find_project().folder == own / FOLDER


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_store_of_another_user_is_passed_over_with_a_warning(
    tmp_path: Path, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / FOLDER).mkdir()
    os.chown(tmp_path / FOLDER, 12345, 12345)
    monkeypatch.chdir(tmp_path)

    said = toolonce("init", place=[])

    assert f"{tmp_path / FOLDER} belongs to another user and is passed over" in said.err
    assert os.listdir(tmp_path / FOLDER) == []
    assert f"its store: {find_project().folder}" in said.err


def test_a_file_is_no_folder_to_write_in_and_an_empty_name_none(tmp_path: Path, toolonce: CommandLine) -> None:
    (tmp_path / "file").write_text("")

    assert toolonce("init", str(tmp_path / "file"), place=[]).code == 2
    assert toolonce("init", "", place=[]).code == 2


def test_it_names_the_programs_that_the_shell_does_not_find_and_a_variable_that_wins(
    tmp_path: Path, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("TOOLONCE_REDIS_URL", "redis://localhost:1/0")

    said = toolonce("init", place=[])

    programs = Path(sys.executable).parent
    assert said.out == f"{programs / 'toolonce'} up --tools tools:tools\n{programs / 'python'} harness.py\n"
    assert "TOOLONCE_REDIS_URL is set" in said.err


@pytest.mark.slow
def test_what_it_writes_passes_its_own_test_the_linter_and_strict_type_checkers(
    tmp_path: Path, toolonce: CommandLine
) -> None:
    pytest.importorskip("basedpyright", reason="the dependency group `check` is not installed")
    toolonce("init", str(tmp_path / "one"), place=[])
    python = ["harness.py", "tools.py", "test_tools.py"]

    for command in (
        ["pytest", "-q", "-p", "no:cacheprovider"],
        ["ruff", "check", "--isolated", *python],
        ["ruff", "format", "--isolated", "--check", "--line-length", "120", *python],
    ):
        run = subprocess.run(
            [sys.executable, "-m", *command], cwd=tmp_path / "one", capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, (command, run.stdout, run.stderr)
    assert complaints(tmp_path / "one", python) == ""
