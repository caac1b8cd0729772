"""What ships: the wheel, built through the sdist, and its life beside a user's own modules of the same names."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.support.processes.installation import run, tracked_files

PACKAGES = ("worker", "store", "stream", "ops")
NOT_SHIPPED = {"ops/deploy/Dockerfile"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

USERS_MODULE = "MINE = True\n"
IMPORTS = """
import toolonce.ops.cli, toolonce.store, toolonce.stream, toolonce.worker
import ops, store, stream, worker
assert ops.MINE and store.MINE and stream.MINE and worker.MINE
print(toolonce.store.__file__)
"""
EMBEDDED = """
from toolonce.ops.server.embedded import transient_server
with transient_server() as server:
    print("alive", server.is_alive())
"""


@pytest.fixture
def users_folder(tmp_path: Path) -> Path:
    """A user's project, with modules named as our folders are."""
    for name in PACKAGES:
        (tmp_path / f"{name}.py").write_text(USERS_MODULE)
    return tmp_path


def test_the_wheel_holds_exactly_the_tracked_files_of_the_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    tracked = {name for name in tracked_files() if name.startswith(tuple(f"{package}/" for package in PACKAGES))}

    assert shipped == {f"toolonce/{name}" for name in tracked - NOT_SHIPPED}
    assert tracked >= NOT_SHIPPED


def test_the_wheel_carries_its_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert [name for name in archive.namelist() if name.endswith(".dist-info/licenses/LICENSE")]


def test_a_users_own_modules_of_our_names_are_no_trouble(installed: Path, users_folder: Path) -> None:
    origin = run(installed / "python", "-c", IMPORTS, cwd=users_folder)

    assert "site-packages" in origin
    assert "toolonce" in run(installed / "toolonce", "--help", cwd=users_folder)
    assert "toolonce" in run(installed / "python", "-m", "toolonce.ops", "--help", cwd=users_folder)


def test_the_installed_wheel_starts_its_server(installed: Path, users_folder: Path) -> None:
    assert "alive True" in run(installed / "python", "-c", EMBEDDED, cwd=users_folder)


def test_the_installed_wheel_runs_the_whole_path(installed: Path, users_folder: Path) -> None:
    assert "0 open" in run(installed / "toolonce", "demo", cwd=users_folder)
