"""What a test session leaves behind: processes, and modules imported under a second name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Every process that a test starts inherits this variable, also one that left our session and lost its parent.
MARK = "TOOLONCE_TEST_SESSION"


def leftover_processes() -> list[str]:
    """Return the command lines of processes of this test session that still run, without ourselves."""
    return _marked_processes() if Path("/proc/self/environ").exists() else _children()


def bare_modules() -> list[str]:
    """Return our packages that were imported without `toolonce.`: second copies, whose classes are not the same."""
    return [name for name in ("worker", "store", "stream", "ops") if name in sys.modules]


def _marked_processes() -> list[str]:
    mark = f"{MARK}={os.environ[MARK]}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if int(process.name) != os.getpid() and mark in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # gone, or not ours
    return [command for command in found if command]  # a zombie has none: it is dead, only not yet reaped


def _children() -> list[str]:
    listed = subprocess.run(["ps", "-axo", "ppid=,command="], capture_output=True, text=True, check=True).stdout
    rows = (line.split(None, 1) for line in listed.splitlines())
    return [command for parent, command in rows if int(parent) == os.getpid() and not command.startswith("ps ")]
