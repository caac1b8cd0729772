"""A checkout of the project whose cost is measured: this one, or an earlier one beside it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grounds import HERE
from rivals import Rival, our_worker

COMPACT = "hash-max-listpack-value"
COMPACT_BY_DEFAULT = "64"


@dataclass(frozen=True)
class Checkout:
    """One checkout. Its packages run with this one's benchmarks, and with the libraries that are installed here."""

    name: str
    root: Path

    @classmethod
    def at(cls, name: str, root: Path) -> Checkout:
        """The checkout in this folder.

        Raises:
            SystemExit: there is none.
        """
        if not (root / ".types" / "toolonce" / "store").is_dir():
            raise SystemExit(f"{root} is no checkout of toolonce: it has no .types/toolonce/store")
        return cls(name, root.resolve())

    @property
    def environment(self) -> Mapping[str, str]:
        return {"PYTHONPATH": f"{self.root / '.types'}{os.pathsep}{HERE}"}

    @property
    def server(self) -> Mapping[str, str]:
        """The one option that its embedded server had not always, as it has it; it decides on memory and time."""
        for settings in self.root.glob("ops/**/embedded.conf"):
            found = re.search(rf"^{COMPACT} (\d+)$", settings.read_text("utf-8"), re.MULTILINE)
            return {COMPACT.replace("-", "_"): found[1] if found else COMPACT_BY_DEFAULT}
        return {}

    def rival(self) -> Rival:
        """Its worker with 32 slots, its public client and its server."""
        command, more = our_worker(), self.environment
        return Rival(self.name, "toolonce.worker", command, self.submit, environment=more, server=self.server)

    def submit(self, url: str, count: int) -> None:
        """Submit calls in turns of 10, as a harness does."""
        subprocess.run(self._command("submit", url, count), check=True, cwd=HERE, env=self._environment())

    def admit(self, url: str, count: int) -> None:
        """Fill the queue, quickly."""
        subprocess.run(self._command("admit", url, count), check=True, cwd=HERE, env=self._environment())

    def phases(self, what: str, url: str, count: int = 0) -> Phases:
        """Start a `light_client` that waits before each of its phases."""
        command = self._command(what, url, count)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return Phases(subprocess.Popen(command, cwd=HERE, env=self._environment(), text=True, **pipes))  # type: ignore[call-overload]

    def _command(self, what: str, url: str, count: int) -> list[str]:
        return [sys.executable, "light_client.py", what, url, str(count)]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self.environment}


class Phases:
    """A client at work in a process of its own. Iterate: each phase begins when the next one is asked for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.done: dict[str, float] = {}

    def __iter__(self) -> Iterator[str]:
        while "phase" in (message := self._read()):
            yield message["phase"]
            self._go()
        self.done = message
        self._process.wait()

    def ready(self) -> str:
        """Wait until the client is connected and stands before its first phase."""
        return str(self._read()["phase"])

    def start(self) -> None:
        """Let the phase begin that `ready` has told of."""
        self._go()

    def finish(self) -> Mapping[str, float]:
        """What the client did in its only phase."""
        self.done = self._read()
        self._process.wait()
        return self.done

    def _go(self) -> None:
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a light client ended early; its error is above")
        message: dict[str, Any] = json.loads(line)
        return message
