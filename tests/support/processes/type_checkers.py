"""Type checkers over a user's files: mypy under ``strict``, and basedpyright in the mode that is pyright's own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

TYPES = Path(__file__).resolve().parents[3] / ".types"


def complaints(folder: Path, names: Iterable[str]) -> str:
    """What either says against these files of a folder; "" where both accept them."""
    strict, standard = folder / ".mypy.ini", folder / ".pyright.json"
    strict.write_text(f"[mypy]\nstrict = true\nmypy_path = {TYPES}\nexplicit_package_bases = true\n")
    standard.write_text(json.dumps({"typeCheckingMode": "standard", "extraPaths": [str(TYPES)]}))
    mypy = ["mypy", "--config-file", str(strict), "--follow-imports", "silent", "--no-error-summary"]
    pyright = ["basedpyright", "--project", str(standard), "--pythonpath", sys.executable]
    said = ""
    for command in (mypy, pyright):
        run = subprocess.run(
            [sys.executable, "-m", *command, *names], cwd=folder, capture_output=True, text=True, timeout=200
        )
        said += run.stdout + run.stderr if run.returncode else ""
    return said
