"""What a server and processes have used so far: processor time, bytes of the append-only file, memory. Linux only."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SESSION = 3  # place of the session id in /proc/<pid>/stat, counted behind the program's name


@dataclass(frozen=True)
class ServerUsage:
    """Readings of one server.

    Attributes:
        cpu_us: time of its main thread, user and system; microseconds.
        aof_bytes: size of its append-only file.
        data_bytes: its memory without clients, buffers and scripts.
    """

    cpu_us: float
    aof_bytes: int
    data_bytes: int

    @classmethod
    def of(cls, client: Any) -> ServerUsage:
        info = client.info("cpu", "memory", "persistence")
        cpu = info["used_cpu_sys_main_thread"] + info["used_cpu_user_main_thread"]
        return cls(cpu * 1e6, info["aof_current_size"], info["used_memory_dataset"])


def session_cpu_us(leaders: Iterable[int]) -> float:
    """Microseconds that the threads of these sessions have run, as the scheduler counts them. Threads that have ended
    are not in it."""
    sessions = set(leaders)
    return sum(_run_ns(process) for process in _processes() if _session(process) in sessions) / 1000


def _processes() -> list[Path]:
    return [Path("/proc", name) for name in os.listdir("/proc") if name.isdigit()]


def _session(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[_SESSION])
    except OSError:  # it has ended meanwhile
        return 0


def _run_ns(process: Path) -> int:
    total = 0
    try:
        for thread in (process / "task").iterdir():
            total += int((thread / "schedstat").read_text().split()[0])
    except OSError:
        pass
    return total
