"""Identifies this process, and decides whether another one is known to be gone, by what the kernel says for certain.

A process is identified by boot, process namespace, process id and start time, since process ids are reused. Another
host's process, or one of another container, cannot be observed from here: it is not known to be gone. Linux only;
elsewhere no process is known to be gone but one that said so itself.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

ENDED = "ended"
"""The identity that a process leaves after it has ended in order."""
_PROC = Path("/proc")


def identity() -> str:
    """This process; "" where the system does not tell."""
    try:
        return f"{_around()} {os.getpid()} {_start_time(os.getpid())}"
    except OSError:
        return ""


def is_gone(identity_of: str) -> bool:
    """Whether that process is known to be gone; False where that cannot be known."""
    if identity_of == ENDED:
        return True
    around, _, rest = identity_of.rpartition(" ")[0].rpartition(" ")
    try:
        pid, started = int(rest), identity_of.rpartition(" ")[2]
        if around != _around():
            return False
        return not _exists(pid) or _start_time(pid) != started
    except (OSError, ValueError):
        return False


def _around() -> str:
    """In which boot of which kernel, and in which process namespace of it: there, a number names one process."""
    boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"


def _exists(pid: int) -> bool:
    # Asked by signal 0: /proc may hide the processes of other users.
    with suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True


def _start_time(pid: int) -> str:
    """In ticks since the boot; "gone" for one that has ended and was not reaped yet. The name may hold anything, also
    blanks and brackets."""
    facts = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    threads = len(list((_PROC / str(pid) / "task").iterdir())) if facts[0] == "Z" else 2
    return facts[19] if threads > 1 else "gone"
