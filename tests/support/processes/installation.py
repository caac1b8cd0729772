"""A wheel of this checkout, and a clean environment that holds it: as a user has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CONSTRAINTS = ROOT / "constraints.txt"


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


def build_wheel(source: Path) -> Path:
    """The wheel, from a copy of the tracked files: what lies about in the checkout plays no part."""
    for name in tracked_files():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name, follow_symlinks=False)
    run(sys.executable, "-m", "build", "--outdir", "dist", cwd=source)
    (built,) = (source / "dist").glob("*.whl")
    return built


def install(wheel: Path, environment: Path) -> Path:
    """The folder of the programs of a new environment that holds the wheel, with the pins of this checkout."""
    run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=environment)
    python = environment / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", wheel, cwd=environment)
    return environment / "bin"
