"""Instructions that a server executes, counted by callgrind: user space only, the same on a busy machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from checkouts import Checkout

from tests.support.servers.redis_server import RealServer

MISSING = "instructions are counted by valgrind, which is not installed: apt-get install valgrind"
WITHOUT = "valgrind is not installed (apt-get install valgrind), so no instructions were counted"
_TOTAL = re.compile(r"^(?:totals|summary): (\d+)", re.MULTILINE)
# Little of what the server does by the clock, and no rewrite, falls into a count.
_QUIET = {"hz": "1", "dynamic_hz": "no", "auto_aof_rewrite_percentage": "0"}


def is_installed() -> bool:
    return all(map(shutil.which, ("valgrind", "vgdb")))


class CountedServer(RealServer):
    """A server of which each instruction is counted. Some fifty times as slow as one that is not."""

    def __init__(self, **options: str) -> None:
        super().__init__(**_QUIET, **options)

    def command(self) -> list[str]:
        out = f"--callgrind-out-file={self.folder}/counts"
        return ["valgrind", "--tool=callgrind", "--quiet", out, *super().command()]

    def zero(self) -> None:
        """Count from here on."""
        self._tell("zero")

    def count(self) -> int:
        """Instructions since `zero`."""
        before = set(self._dumps())
        self._tell("dump")
        new = [path.read_text() for path in self._dumps() if path not in before]
        return max(int(found) for text in new for found in _TOTAL.findall(text))

    def _dumps(self) -> list[Path]:
        return list(self.folder.glob("counts.*"))

    def _tell(self, what: str) -> None:
        subprocess.run(["vgdb", f"--pid={self.pid}", what], check=True, capture_output=True)


@dataclass(frozen=True)
class Instructions:
    """Of the server, for one call: by step, and which server."""

    steps: dict[str, float]
    server: str

    @property
    def total(self) -> float:
        return sum(self.steps.values())


def instructions(checkout: Checkout, count: int) -> Instructions:
    """Count one call's instructions: admitted in turns of 10, taken, claimed and settled, 32 commands at a time."""
    with CountedServer(**checkout.server) as server:
        counted: dict[str, float] = {}
        phases = checkout.phases("steps", server.url, count)
        last = ""
        for phase in phases:
            if last:
                counted[last] = server.count() / count
            server.zero()
            last = phase
        counted[last] = server.count() / count
        assert phases.done["calls"] == count
        with server.client() as client:
            info = client.info("server")
        version = info.get("valkey_version") or info["redis_version"]
        return Instructions(counted, f"{info.get('server_name', 'redis')} {version}")
