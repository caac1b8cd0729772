"""What ships: the wheel, built through the sdist, and its life beside a user's own modules of the same names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("worker", "store", "stream", "ops")
NOT_SHIPPED = {"ops/deploy/Dockerfile"}
CONSTRAINTS = ROOT / "constraints.txt"

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


def run(*command: str | Path, cwd: Path) -> str:
    environment = {
        name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "COVERAGE_PROCESS_START"}
    }
    environment |= {"PIP_CONSTRAINT": str(CONSTRAINTS), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{command}:\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def tracked_files() -> list[str]:
    listed = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    return [name for name in listed if name and (ROOT / name).exists()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, from a copy of the tracked files: what lies about in the checkout plays no part."""
    source = tmp_path_factory.mktemp("source")
    for name in tracked_files():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name, follow_symlinks=False)
    run(sys.executable, "-m", "build", "--outdir", "dist", cwd=source)
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of a clean environment that holds the wheel."""
    environment = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=environment)
    python = environment / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", wheel, cwd=environment)
    return environment / "bin"


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
