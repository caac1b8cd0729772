"""What a test session leaves behind: processes, and modules imported under a second name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.support.wait import wait_until

# Every process that a test starts inherits this variable, also one that left our session and lost its parent.
MARK = "TOOLONCE_TEST_SESSION"


def leftover_processes() -> dict[int, str]:
    """Return the processes of this test session that still run, without ourselves: id and command line."""
    return _marked_processes() if Path("/proc/self/environ").exists() else _children()


def end_leftovers(grace: float) -> list[str]:
    """Kill what still runs after `grace` seconds, and return its command lines."""
    try:
        wait_until(lambda: not leftover_processes(), grace)
        return []
    except AssertionError:
        left = leftover_processes()
    for process in left:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return list(left.values())


def bare_modules() -> list[str]:
    """Return our packages that were imported without `toolonce.`: second copies, whose classes are not the same."""
    return [name for name in ("worker", "store", "stream", "ops") if name in sys.modules]


def _marked_processes() -> dict[int, str]:
    mark = f"{MARK}={os.environ[MARK]}".encode()
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if int(process.name) != os.getpid() and mark in (process / "environ").read_bytes().split(b"\0"):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found[int(process.name)] = command
        except OSError:
            continue  # gone, or not ours
    return {number: command for number, command in found.items() if command}  # without one: dead, not yet reaped


def _children() -> dict[int, str]:
    listed = subprocess.run(["ps", "-axo", "ppid=,pid=,command="], capture_output=True, text=True, check=True).stdout
    rows = (line.split(None, 2) for line in listed.splitlines())
    ours = {int(number): command for parent, number, command in rows if int(parent) == os.getpid()}
    return {number: command for number, command in ours.items() if not command.startswith("ps ")}
